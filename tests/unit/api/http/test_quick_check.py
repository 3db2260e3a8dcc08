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

"""What the quick check lets through, jsonschema lets through."""

import copy
import importlib
import pkgutil
import random
from typing import Any

import jsonschema
import testtools

from nova_accel.api import schemas
from nova_accel.api.http import quick_check
from nova_accel.api.schemas import accelerator_request
from nova_accel.api.schemas import binding
from nova_accel.api.schemas import device_profile
from nova_accel.api.schemas import host
from nova_accel.api.schemas import programming
from unit.api import base

_ACQUIRE = {
    'attempt': 1,
    'project_id': base.PROJECT,
    'device_profile_name': 'gold',
    'groups': [base.GROUP],
    'image_uuid': None,
    'providers': {base.RP: {'allocated': {'FPGA': 1}, 'traits': base.TRAITS}},
}

#: Values that are right; other ones are made of them.
_RIGHT: list[tuple[dict[str, Any], Any]] = [
    (host.REPORT, base.report()),
    (host.CLEANING, {'revision': 1, 'cleaned': [base.NOBODY], 'failed': {}}),
    (host.PROVISIONING, {'arqs': [base.NOBODY, base.INSTANCE]}),
    (binding.ACQUIRE, _ACQUIRE),
    (binding.ADOPT, {'attempt': 0, 'arqs': [base.NOBODY]}),
    (
        binding.ADOPT,
        {
            'attempt': 1,
            'arqs': [],
            'names': {
                base.NOBODY: {
                    'device_profile_name': '',
                    'device_profile_group_id': 0,
                }
            },
            'leaving': [base.NOBODY],
        },
    ),
    (
        binding.ADD,
        {
            'attempt': 0,
            'project_id': 'p',
            'arqs': [base.WANTED],
            'kept': [base.NOBODY],
        },
    ),
    (
        accelerator_request.CREATE,
        {'device_profile_name': '', 'image_uuid': base.NOBODY},
    ),
    (accelerator_request.PATCH, {base.NOBODY: base.patch()}),
    (device_profile.CREATE, [{'name': 'a', 'groups': [base.GROUP]}]),
    (programming.RECORD, base.RECORD),
    (
        programming.PATCH,
        [{'op': 'replace', 'path': '/program', 'value': [{'image_uuid': ''}]}],
    ),
]

_ODD = (
    None, True, False, 0, 1, -1, 1.0, 1.5, 2**40, float('inf'), '', 'x', 'X',
    'x' * 300, 'a\n', '\0', '\ud800', base.NOBODY, base.NOBODY.upper(), [],
    ['x'], ['x', 'x'], [1, True], [base.NOBODY] * 2, {}, {'x': 1}, {'': []},
)  # fmt: skip


def _changed(value: Any, dice: random.Random) -> Any:
    """A copy of a value with an odd one somewhere in it."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        name = dice.choice(sorted(value))
        new = {**value}
        chance = dice.random()
        if chance < 0.1:
            del new[name]
        elif chance < 0.2:
            new[dice.choice(['x', '', base.RP])] = new[name]
        else:
            new[name] = _changed(value[name], dice)
        return new
    if isinstance(value, list) and value and dice.random() < 0.9:
        place = dice.randrange(len(value))
        return [
            *value[:place],
            _changed(value[place], dice),
            *value[dice.choice([place, place + 1]) :],
        ]
    return copy.deepcopy(dice.choice(_ODD))


class TestQuickCheck(testtools.TestCase):
    def test_knows_what_is_right(self) -> None:
        for schema, value in _RIGHT:
            jsonschema.validate(value, schema)
            self.assertTrue(quick_check.matches(value, schema), value)

    def test_lets_through_only_what_jsonschema_lets_through(self) -> None:
        dice = random.Random(17)
        agreed = {True: 0, False: 0}
        for schema, right in _RIGHT:
            validator = jsonschema.Draft202012Validator(schema)
            for _time in range(300):
                value = _changed(right, dice)
                is_right = quick_check.matches(value, schema)
                agreed[is_right] += 1
                if is_right:
                    self.assertTrue(validator.is_valid(value), value)
        self.assertGreater(min(agreed.values()), 100)

    def test_refuses_what_jsonschema_refuses_of_each_scalar(self) -> None:
        for schema in _schemas():
            validator = jsonschema.Draft202012Validator(schema)
            for value in _ODD:
                if quick_check.matches(value, schema):
                    self.assertTrue(validator.is_valid(value), value)

    def test_knows_each_keyword_of_the_api(self) -> None:
        self.assertGreater(len(_schemas()), 10)
        for schema in _schemas():
            quick_check.matches(None, schema)

    def test_does_not_ignore_a_keyword(self) -> None:
        self.assertRaises(
            KeyError, quick_check.matches, 1, {'exclusiveMinimum': 0}
        )


def _schemas() -> list[dict[str, Any]]:
    return [
        value
        for found in pkgutil.iter_modules(schemas.__path__)
        for name, value in vars(
            importlib.import_module(f'{schemas.__name__}.{found.name}')
        ).items()
        if name.isupper() and isinstance(value, dict)
    ]
