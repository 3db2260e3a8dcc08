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


import pathlib
import re
import unittest

from nova.compute import vm_states
from nova.objects import fields
import testtools

import functional
from functional import changes_by_state
from functional import operations


class TestOperations(testtools.TestCase):
    """The manual's table of server operations says what tests show."""

    def setUp(self):
        super().setUp()
        self.shown = operations.shown()

    def test_each_cell_is_shown(self):
        self.assertEqual(
            [], [cell for cell in operations.cells() if cell not in self.shown]
        )

    def test_what_nova_forbids(self):
        for method in operations.FORBIDDEN.values():
            self.assertRegex(operations.place(method), r'api\.py:\d+ @block')

    def test_enough_of_them(self):
        self.assertGreater(len(operations.cells()), 80)

    def test_an_unknown_cell(self):
        for operation, case, device in (
            ('resiez', '', 'PCI'),
            ('boot', 'at night', 'PCI'),
            ('boot', '', 'FPGA'),
        ):
            self.assertRaisesRegex(
                ValueError,
                'no such cell',
                operations.shows,
                operation,
                case,
                devices=[device],
            )

    def test_what_nova_allows(self):
        self.assertRaises(LookupError, operations.place, 'rescue')


class TestQuick(testtools.TestCase):
    def test_each_line_is_one_test(self):
        tests = pathlib.Path(functional.__file__).parent
        names = [
            test.id()
            for test in testtools.iterate_tests(
                unittest.defaultTestLoader.discover(
                    str(tests), top_level_dir=str(tests.parent)
                )
            )
        ]
        for line in (tests / 'quick.txt').read_text().splitlines():
            if not line.startswith('#'):
                self.assertEqual(
                    1,
                    sum(re.search(line, name) is not None for name in names),
                    line,
                )


class TestChangesByState(testtools.TestCase):
    def test_each_state_of_nova_is_tried(self):
        """Nova knows a server in any other to be busy, or gone."""
        self.assertEqual(
            set(fields.InstanceState.ALL),
            {state.vm_state for state in changes_by_state.TABLE}
            | {vm_states.BUILDING, vm_states.DELETED},
        )

    def test_each_outcome_is_met(self):
        self.assertEqual(
            set(changes_by_state.Outcome),
            {
                outcome
                for outcomes in changes_by_state.TABLE.values()
                for outcome in outcomes.values()
            },
        )
