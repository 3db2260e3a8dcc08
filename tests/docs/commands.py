# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Commands as the manual shows them, and the programs' own parsers."""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import importlib
from importlib import metadata
import inspect
import itertools
import json
import re
import shlex
import sys
from unittest import mock

from docs import pages
from rig import typed_commands

#: What a reader replaces.
PLACEHOLDER = 'PLACEHOLDER'

_SUBSHELL = re.compile(r'\$\(([^()]*)\)')
_ASSIGNMENT = re.compile(r'[A-Z_]+=')
_NO_COMMANDS = frozenset({'openstack.cli.base', 'openstack.cli.extension'})
_SEPARATORS = frozenset('|&;')


#: How extra specs of flavors begin, and the microversion that checks them.
_OUR_SPECS = ('nova_accel:', 'accel:device_profile')
_CHECKED_SPECS = '2.86'


class WrongCommandError(Exception):
    """The program would refuse the command."""


@dataclasses.dataclass(frozen=True)
class Command:
    """One program with its arguments.

    ``place`` is the page and the line of its block or the name of its file.
    """

    place: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f'{self.place}: {shlex.join(self.words)}'


def all_commands() -> Iterator[Command]:
    """Those of all console blocks, and of the scripts that pages show."""
    for page in pages.all_pages().values():
        for line, text in page.blocks('console'):
            place = f'{page.name}:{line}'
            typed = [each for _prompt, each in typed_commands.typed(text)]
            if not typed:
                raise WrongCommandError(f'{place}: no line has a prompt')
            for each in typed:
                yield from _commands(place, each)
    for path in sorted(pages.SOURCE.rglob('snippets/*.sh')):
        for each in typed_commands.of_script(path.read_text()):
            yield from _commands(path.name, each)


def _commands(place: str, text: str) -> Iterator[Command]:
    text = typed_commands.BLANK.sub(PLACEHOLDER, text)
    for inner in _SUBSHELL.findall(text):
        yield from _commands(place, inner)
    text = _SUBSHELL.sub(PLACEHOLDER, text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars='|&;<>')
    lexer.whitespace_split = True
    lexer.commenters = ''
    words: list[str] = []
    is_target = False
    for word in [*lexer, ';']:
        if word and set(word) <= _SEPARATORS:
            while words and _ASSIGNMENT.match(words[0]):
                words.pop(0)
            if words:
                yield Command(place, tuple(words))
            words = []
        elif word and set(word) <= frozenset('<>'):
            is_target = True
        elif is_target:
            is_target = False
        elif word != '...':
            words.append(word)


def _strict(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    def error(message: str) -> None:
        raise WrongCommandError(message)

    parser.error = error  # type: ignore[method-assign,assignment]
    return parser


def _of_cliff(
    words: Sequence[str], commands: dict[str, Callable[[], type]]
) -> None:
    """Parse as cliff does, with the command of the longest name."""
    for end in range(len(words), 0, -1):
        name = ' '.join(words[:end])
        if name in commands:
            command = commands[name]()(mock.MagicMock(), None)
            _strict(command.get_parser(name)).parse_args(list(words[end:]))
            return
    raise WrongCommandError('there is no such command')


@functools.cache
def openstack_commands() -> dict[str, Callable[[], type]]:
    """Name -> what loads it: of openstackclient and its plugins.

    Cyborg's own client is left out. Where it is installed, its commands take
    the place of those of openstackclient.
    """
    entries = metadata.entry_points()
    return {
        entry.name.replace('_', ' '): entry.load
        for group in sorted(entries.groups)
        if group.startswith('openstack.') and group not in _NO_COMMANDS
        for entry in entries.select(group=group)
        if entry.dist is None or entry.dist.name != 'python-cyborgclient'
    }


@functools.cache
def _openstack_options() -> argparse.ArgumentParser:
    from openstackclient import shell
    from openstackclient.common import clientmanager

    parser = shell.OpenStackShell().build_option_parser('openstack', '0')
    for module in clientmanager.PLUGIN_MODULES:
        # openstackclient and a plugin may both add the same options.
        with contextlib.suppress(argparse.ArgumentError):
            parser = module.build_option_parser(parser)
    return _strict(parser)


def _openstack(words: Sequence[str]) -> None:
    count = 0
    while count < len(words) and words[count].startswith('--'):
        count += 1 if '=' in words[count] else 2
    options = _openstack_options().parse_args(list(words[:count]))
    if (
        'flavor' in words
        and any(word.startswith(_OUR_SPECS) for word in words)
        and options.os_compute_api_version != _CHECKED_SPECS
    ):
        raise WrongCommandError(
            f'without --os-compute-api-version {_CHECKED_SPECS} Nova takes an '
            'extra spec that is misspelt'
        )
    _of_cliff(words[count:], openstack_commands())


@functools.cache
def manage_commands() -> dict[str, Callable[[], type]]:
    """Name -> what loads it: of nova-accel-manage."""
    from nova_accel.cmd import manage

    return {
        name: entry.load for name, entry in manage.Manage().command_manager
    }


def _manage(words: Sequence[str]) -> None:
    _of_cliff(words, manage_commands())


def _status(words: Sequence[str]) -> None:
    if words != ('upgrade', 'check'):
        raise WrongCommandError('there is no such command')


def _tool(
    module: str, name: str = '_parse'
) -> Callable[[Sequence[str]], None]:
    """A tool of the checkout; this function of it reads the arguments."""

    def refuse(_parser: argparse.ArgumentParser, message: str) -> None:
        raise WrongCommandError(message)

    def parse(words: Sequence[str]) -> None:
        loaded = importlib.import_module(module)
        with (
            mock.patch.object(
                argparse.ArgumentParser,
                'error',
                autospec=True,
                side_effect=refuse,
            ),
            mock.patch.object(sys, 'argv', [module, *words]),
        ):
            function = getattr(loaded, name)
            if inspect.signature(function).parameters:
                function(list(words))
            else:
                function()

    return parse


def _named_in(path: str) -> Callable[[Sequence[str]], None]:
    """For a tool that cannot be loaded here: its parts have these names."""

    def check(words: Sequence[str]) -> None:
        text = (pages.ROOT / path).read_text()
        # After "--" comes an expression for the names of tests.
        for word in itertools.takewhile('--'.__ne__, words):
            if not re.search(rf'(?<![\w-]){re.escape(word)}(?![\w-])', text):
                raise WrongCommandError(f'{path} does not know {word}')

    return check


def _curl(words: Sequence[str]) -> None:
    """A call of the API: its path, its method and its body."""
    from nova_accel.api import routes

    parser = _strict(argparse.ArgumentParser())
    parser.add_argument('-X', default='GET')
    parser.add_argument('-H', action='append', default=[])
    parser.add_argument('-d')
    parser.add_argument('url')
    asked = parser.parse_args(list(words))
    path = re.split(r'ACCELERATOR|/accelerator/v2', asked.url)[-1]
    path = path.partition('?')[0]
    if path == asked.url or path.endswith(('/accelerator', '/healthcheck')):
        return
    if asked.d is not None:
        json.loads(asked.d)
    for known, methods in routes.API.items():
        pattern = re.sub(r'\{[^{}]+\}', '[^/]+', known)
        if re.fullmatch(pattern, path):
            if asked.X not in methods:
                raise WrongCommandError(f'{path} has no {asked.X}')
            return
    raise WrongCommandError(f'the API has no path {path}')


#: Program -> what takes its arguments as the program itself does.
CHECKED: dict[str, Callable[[Sequence[str]], None]] = {
    'openstack': _openstack,
    'nova-accel-manage': _manage,
    'nova-accel-status': _status,
    'curl': _curl,
    'tools/bench': _tool('rig.benchmark.main'),
    'tools/quickstart': _tool('rig.quickstart.main'),
    'tools/lab/lab': _tool('lab.command_line', 'parse'),
    'tools/test': _named_in('tools/test'),
}
