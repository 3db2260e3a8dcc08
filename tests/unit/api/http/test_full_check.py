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

"""A body that does not match costs no more than its length."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import json
import random
import re
import sys
from typing import Any

import jsonschema
import testtools

from nova_accel import exceptions
from nova_accel.api import routes
from nova_accel.api.http import full_check
from nova_accel.api.http import request
from nova_accel.api.http import route
from nova_accel.api.schemas import accelerator_request
from unit import call_count
from unit.api import base

#: Values of so many parts, which look in vain for what is not linear.
_HOSTILE: Mapping[str, Callable[[int], Any]] = {
    'objects': lambda size: [{'a': number} for number in range(size)],
    'objects of a region': lambda size: [
        {'uuid': str(number), 'name': [number]} for number in range(size)
    ],
    'lists': lambda size: [[number, {}] for number in range(size)],
    'texts and numbers': lambda size: [*range(size), *map(str, range(size))],
    'numbers of one hash': lambda size: [
        number * sys.hash_info.modulus for number in range(size)
    ],
    'uuids': lambda size: [*map(base.numbered_uuid, range(size))],
    'names': lambda size: {str(number): number for number in range(size)},
    'objects of uuids': lambda size: {
        base.numbered_uuid(number): {} for number in range(size)
    },
    'letters': lambda size: 'a' * size,
    'digits': lambda size: '0' * size + '\n',
}


def _bodies() -> Iterator[tuple[str, route.Route]]:
    for path, methods in routes.API.items():
        for method, found in methods.items():
            if found.body is not None:
                yield f'{method} {path}', found
    # The fields of an ARQ are read from the operations of a patch.
    yield (
        'BINDING',
        route.Route(
            lambda _request: None,
            'The fields of an ARQ',
            None,
            body=accelerator_request.BINDING,
        ),
    )


def _places(
    schema: Any, wrap: Callable[[Any], Any] = lambda value: value
) -> Iterator[tuple[Mapping[str, Any], Callable[[Any], Any]]]:
    """Each schema in a schema, and what puts a value to its place."""
    yield schema, wrap
    for name, below in schema.get('properties', {}).items():
        yield from _places(below, lambda value, name=name: wrap({name: value}))
    if isinstance(schema.get('additionalProperties'), dict):
        yield from _places(
            schema['additionalProperties'],
            lambda value: wrap({base.NOBODY: value}),
        )
    if 'propertyNames' in schema:
        yield from _places(schema['propertyNames'], wrap)
    if 'items' in schema:
        yield from _places(schema['items'], lambda value: wrap([value]))
    for below in schema.get('anyOf', ()):
        yield from _places(below, wrap)


def _work(value: Any, schema: Mapping[str, Any]) -> int:
    """How many functions are called to refuse, or to take, a value."""

    def check() -> None:
        with contextlib.suppress(exceptions.InvalidRequest):
            request.check(value, schema)

    return call_count.calls_of(check)


class TestWork(testtools.TestCase):
    """Each hostile value, at each place of each body."""

    def test_is_linear(self) -> None:
        places = 0
        for name, found in _bodies():
            assert found.body is not None
            for _schema, wrap in _places(found.body):
                places += 1
                for kind, make in _HOSTILE.items():
                    works = [
                        _work(wrap(make(size)), found.body)
                        for size in (100, 200, 400)
                    ]
                    # Four times as much, and what does not depend on it.
                    self.assertLess(
                        works[2], 4.4 * works[0] + 1000, (name, kind, works)
                    )
        self.assertGreater(places, 150)

    def test_of_the_longest_body(self) -> None:
        """As many items as the body can have, where each is to be another."""
        places = 0
        for name, found in _bodies():
            assert found.body is not None
            for schema, wrap in _places(found.body):
                if 'uniqueItems' not in schema:
                    continue
                places += 1
                for kind, make in _HOSTILE.items():
                    body, count = self.longest(
                        wrap, make, found.max_body_bytes
                    )
                    self.assertLess(
                        _work(body, found.body),
                        100 * count + 20_000,
                        (name, kind, count),
                    )
        self.assertGreaterEqual(places, 7)

    def longest(
        self,
        wrap: Callable[[Any], Any],
        make: Callable[[int], Any],
        most: int,
    ) -> tuple[Any, int]:
        # 8 MiB of the larger bodies take long to count, and show no more.
        most = min(most, 512 * 1024)
        each = len(json.dumps(make(1000))) / 1000
        count = int(0.7 * most / each)
        body = wrap(make(count))
        self.assertLessEqual(len(json.dumps(body)), most)
        return body, count

    def test_lists_of_different_items_have_a_bound(self) -> None:
        for name, found in _bodies():
            for schema, _wrap in _places(found.body):
                if 'uniqueItems' in schema:
                    self.assertIn('maxItems', schema, name)
                    self.assertIn(
                        schema['items']['type'], ('string', 'integer'), name
                    )

    def test_no_pattern_tries_again_and_again(self) -> None:
        """No two parts of a pattern share out a long text among them."""
        patterns = {
            schema['pattern']
            for _name, found in _bodies()
            for schema, _wrap in _places(found.body)
            if 'pattern' in schema
        }
        self.assertGreater(len(patterns), 8)
        for pattern in patterns:
            self.assertRegex(pattern, r'^\^')
            # A character is itself, no quantifier, in a class.
            bare = re.sub(r'\\.|\[[^\]]*\]', 'x', pattern)
            long = re.findall(r'[*+]|\{\d+,(?:\d{2,})?\}', bare)
            self.assertLessEqual(len(long), 1, pattern)
            self.assertNotRegex(bare, r'\)([*+]|\{\d+,)', pattern)


class TestFault(testtools.TestCase):
    def test_a_list_that_is_too_long_is_not_looked_at(self) -> None:
        schema = {
            'type': 'array',
            'maxItems': 2,
            'items': {'type': 'string'},
            'uniqueItems': True,
        }
        error = full_check.fault([1, 1, 1], schema)
        assert error is not None
        self.assertEqual('maxItems', error.validator)

    def test_the_same_twice(self) -> None:
        schema = {'type': 'array', 'uniqueItems': True}
        for value in ([1, 1], [1, 1.0], ['a', 'b', 'a']):
            error = full_check.fault(value, schema)
            assert error is not None
            self.assertEqual('uniqueItems', error.validator)
        for value in ([1, '1'], [1, True], [0, False], ['a', 'b'], []):
            self.assertIsNone(full_check.fault(value, schema), value)

    def test_as_jsonschema(self) -> None:
        """The rest of the schema means what it means there."""
        dice = random.Random(29)
        values = [make(3) for make in _HOSTILE.values()] + [
            None, True, 0, 1.0, -1, 2**40, '', 'no', base.NOBODY, [], {},
        ]  # fmt: skip
        faults = 0
        for _name, found in _bodies():
            assert found.body is not None
            validator = jsonschema.Draft202012Validator(found.body)
            for schema, wrap in _places(found.body):
                value = dice.choice(values)
                is_right = validator.is_valid(wrap(value))
                faults += not is_right
                self.assertEqual(
                    is_right,
                    full_check.fault(wrap(value), found.body) is None,
                    wrap(value),
                )
                inner = jsonschema.Draft202012Validator(schema)
                for value in values:
                    self.assertEqual(
                        inner.is_valid(value),
                        full_check.fault(value, schema) is None,
                        (value, schema),
                    )
        self.assertGreater(faults, 100)


class TestNesting(testtools.TestCase):
    def test_is_the_clients_fault_at_any_depth(self) -> None:
        """Also where JSON is read, but is nested too deep to be told back."""
        for _name, found in _bodies():
            assert found.body is not None
            for _schema, wrap in _places(found.body):
                for depth in range(800, 1000, 25):
                    value: Any = []
                    for _level in range(depth):
                        value = [value]
                    self.assertRaises(
                        exceptions.InvalidRequest,
                        request.check,
                        wrap(value),
                        found.body,
                    )
