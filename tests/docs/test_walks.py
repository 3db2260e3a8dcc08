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

"""The walks through the code name what is there, and are counted."""

import ast
from collections.abc import Iterator
import functools
import itertools
import re
from typing import NamedTuple

from docutils import nodes
import testtools

from docs import pages

_CODE = pages.ROOT / 'nova_accel'

#: The most that a newcomer should have to follow, all walks together.
_MOST_HOPS = 160
_MOST_RETURNS = 25

_COUNT = re.compile(r'\b(?P<hops>[0-9]+) hops, (?P<returns>[0-9]+) returns\b')


class _Step(NamedTuple):
    """A step: a module, and functions of it."""

    module: str
    functions: tuple[str, ...]


class _Count(NamedTuple):
    hops: int
    returns: int


class WalksTest(testtools.TestCase):
    def test_modules_and_functions_exist(self) -> None:
        missing = []
        for steps in _walks().values():
            for module, functions in steps:
                known = _functions(module)
                missing += [
                    f'{module}: {each}'
                    for each in (functions or ('no function is named',))
                    if each not in known
                ]
        self.assertEqual([], missing)

    def test_each_step_is_in_another_module(self) -> None:
        self.assertEqual(
            [],
            [
                f'{title}: {step.module} twice'
                for title, steps in _walks().items()
                for before, step in itertools.pairwise(steps)
                if before.module == step.module
            ],
        )

    def test_no_function_is_entered_twice(self) -> None:
        twice = []
        for title, steps in _walks().items():
            entered = [
                (step.module, each)
                for step in steps
                for each in step.functions
            ]
            twice += [
                f'{title}: {each}'
                for each in dict.fromkeys(entered)
                if entered.count(each) > 1
            ]
        self.assertEqual([], twice)

    def test_counts(self) -> None:
        counts = {title: _count(steps) for title, steps in _walks().items()}
        self.assertEqual(
            {
                **counts,
                'Together': _Count(
                    sum(each.hops for each in counts.values()),
                    sum(each.returns for each in counts.values()),
                ),
            },
            _stated(),
        )

    def test_the_walks_are_short(self) -> None:
        together = _stated()['Together']
        self.assertTrue(together.hops <= _MOST_HOPS, together)
        self.assertTrue(together.returns <= _MOST_RETURNS, together)


def _count(steps: list[_Step]) -> _Count:
    modules = [step.module for step in steps]
    return _Count(len(modules) - 1, len(modules) - len(set(modules)))


@functools.cache
def _walks() -> dict[str, list[_Step]]:
    """Title -> the steps of the walk."""
    return {
        _title(section): [
            _step(item)
            for item in section.findall(nodes.list_item)
            if isinstance(item.parent, nodes.enumerated_list)
        ]
        for section in _sections()
        if any(section.findall(nodes.enumerated_list))
    }


def _stated() -> dict[str, _Count]:
    """Title -> the count that the section states, if it does."""
    return {
        _title(section): _Count(int(found['hops']), int(found['returns']))
        for section in _sections()
        for found in _COUNT.finditer(' '.join(section.astext().split()))
    }


def _sections() -> Iterator[nodes.section]:
    page = pages.all_pages()['contributor/walks']
    return page.tree.findall(nodes.section)


def _title(section: nodes.section) -> str:
    return section[0].astext()


def _step(item: nodes.list_item) -> _Step:
    """The literals before the colon: a module, and functions of it."""
    names = []
    for part in item[0].children:
        if isinstance(part, nodes.literal):
            names.append(part.astext())
        elif ':' in part.astext():
            break
    return _Step(names[0], tuple(names[1:]))


@functools.cache
def _functions(module: str) -> frozenset[str]:
    """The functions of a module, and the methods of its classes."""
    path = _CODE / module
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {
                f'{node.name}.{each.name}'
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            }
    return frozenset(found)
