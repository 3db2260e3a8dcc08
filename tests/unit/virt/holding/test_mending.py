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


import dataclasses
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import mending
from unit.virt.holding import test_attach_journal

INSTANCE = test_attach_journal.INSTANCE
ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD


class Api:
    """The API of a host; ``fault`` is what it raises."""

    def __init__(self):
        self.listed = []
        self.asked = 0
        self.fault = None

    def bindings(self):
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return self.listed


class TestMending(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.api = Api()
        self.findings = host_findings.Findings()

    def damage(self, role=ACTIVE):
        path = self.directory / f'{INSTANCE}.{role}.json'
        path.write_text('{"attem')

    def opened(self):
        self.journal = attach_journal.Journal(self.directory)
        return mending.Mending(
            self.journal,
            self.api,
            lambda binding: self.journal.write(
                attach_journal.of_binding(binding)
            ),
            self.findings,
        )

    def binding(self, role=ACTIVE):
        entry = test_attach_journal.an_entry(role=role)
        return host_binding.Binding(
            INSTANCE,
            role,
            entry.attempt,
            tuple(arq.uuid for arq in entry.arqs),
            entry.arqs,
        )

    def told(self):
        return [
            (found.instance_uuid, found.is_repaired)
            for found in self.findings.all()
            if found.kind is finding.Kind.JOURNAL
        ]

    def test_what_is_whole_costs_nothing(self):
        self.opened().mend(INSTANCE)
        self.assertEqual((0, []), (self.api.asked, self.told()))

    def test_the_api_tells_what_it_had(self):
        self.damage()
        self.api.listed = [self.binding()]
        self.opened().mend(INSTANCE)
        self.assertEqual(
            test_attach_journal.an_entry(), self.journal.read(INSTANCE, ACTIVE)
        )
        self.assertEqual([], self.journal.damaged())
        self.assertEqual([(INSTANCE, True)], self.told())

    def test_the_api_says_that_it_has_nothing(self):
        self.damage()
        for listed in ([], [self.binding(OLD)]):
            self.damage()
            self.api.listed = listed
            self.opened().mend(INSTANCE)
            self.assertIsNone(self.journal.read(INSTANCE, ACTIVE))
        self.assertEqual([(INSTANCE, True)] * 2, self.told()[:1] * 2)

    def test_the_api_does_not_answer(self):
        self.damage()
        self.api.fault = exceptions.ServiceUnavailable('it is away')
        opened = self.opened()
        error = self.assertRaises(
            exceptions.DeviceError, opened.mend, INSTANCE
        )
        self.assertIn(f'{INSTANCE}.active.json', str(error))
        self.assertIn('it is away', str(error))
        opened.mend_or_warn(INSTANCE)
        self.assertRaises(
            exceptions.DeviceError, self.journal.read, INSTANCE, ACTIVE
        )
        self.assertEqual([], self.told())

    def test_what_has_moved_is_not_held_twice(self):
        """The API has not heard of a move, and the old entry is damaged."""
        moved = dataclasses.replace(
            test_attach_journal.an_entry(role=OLD, attempt=2),
            moved_from=ACTIVE,
        )
        attach_journal.Journal(self.directory).write(moved)
        self.damage()
        self.api.listed = [self.binding()]
        self.opened().mend(INSTANCE)
        self.assertEqual([moved], self.journal.entries())
        self.assertEqual([], self.journal.damaged())

    def test_what_was_listed_already(self):
        self.damage()
        self.opened().mend(INSTANCE, [self.binding()])
        self.assertEqual(0, self.api.asked)
        self.assertEqual([], self.journal.damaged())
