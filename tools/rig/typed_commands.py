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

"""Commands as pages of the manual show them, whole and without answers."""

from collections.abc import Iterator
import re
import shlex
import textwrap

#: What stands for a value of the reader's, such as ``<flavor>``.
BLANK = re.compile(r'<[A-Za-z][^<>\n]*>')

_CONSOLE = re.compile(
    r'^( *)\.\. code-block:: console\n\n((?:\1 {3}.*\n| *\n)+)', re.M
)
_PROMPT = re.compile(r'(?P<prompt>[$#]) ')
_COMMENT = re.compile(r'(^|\s+)#\s.*$', re.M)


class OpenCommandError(Exception):
    """A command goes on behind the end of its text."""


def typed(text: str) -> Iterator[tuple[str, str]]:
    """What is typed in a console block.

    :returns: (``$`` of a user's prompt or ``#`` of root's, command)
    """
    lines = iter(text.splitlines())
    for line in lines:
        prompt = _PROMPT.match(line)
        if prompt:
            for command in _whole(line[prompt.end() :], lines):
                yield prompt['prompt'], command


def of_page(text: str) -> Iterator[tuple[str, str]]:
    """What is typed in the console blocks of a page, as of :func:`typed`."""
    for _indent, block in _CONSOLE.findall(text):
        yield from typed(textwrap.dedent(block))


def of_script(text: str) -> Iterator[str]:
    """Each command of a shell script."""
    lines = iter(text.splitlines())
    for line in lines:
        yield from _whole(line, lines)


def _whole(begin: str, following: Iterator[str]) -> Iterator[str]:
    """The command that begins so, on one line; none is a comment."""
    result = begin
    while _is_open(result):
        line = next(following, None)
        if line is None:
            raise OpenCommandError(f'it does not end: {result}')
        result = f'{result}\n{line}'
    result = _COMMENT.sub('', result.replace('\\\n', ' '))
    if result.strip():
        yield result


def _is_open(text: str) -> bool:
    if text.endswith('\\'):
        return True
    try:
        shlex.split(BLANK.sub('blank', text))
    except ValueError:
        return True
    return False
