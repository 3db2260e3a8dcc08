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
import types

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import releases

ENTRY = attach_journal.Entry(
    '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
    arq_types.Role.ACTIVE,
    3,
    attach_journal.Step.HELD,
)


class TestReleases(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journal = attach_journal.Journal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.journal.write(ENTRY)
        self.asked = []
        self.answers = []
        self.stuck = False
        self.releases = releases.Releases(
            self.journal,
            types.SimpleNamespace(release=self.answer),
            types.SimpleNamespace(unplug_all=self.unplug_all),
            types.SimpleNamespace(released=lambda arqs: None),
        )

    def answer(self, instance_uuid, role, attempt):
        self.asked.append((role, attempt))
        if self.answers:
            raise self.answers.pop(0)

    def unplug_all(self, arqs):
        if self.stuck:
            raise exceptions.DeviceError('stuck')

    def test_it_is_forgotten(self):
        self.assertFalse(self.releases.is_due(ENTRY))
        self.releases.release(ENTRY)
        self.assertEqual([], self.journal.entries())
        self.assertEqual([(ENTRY.role, 3)], self.asked)

    def test_the_role_before_is_freed_too(self):
        self.releases.release(
            dataclasses.replace(ENTRY, moved_from=arq_types.Role.OLD)
        )
        self.assertEqual(
            [(ENTRY.role, 3), (arq_types.Role.OLD, 3)], self.asked
        )

    def test_a_newer_attempt_has_it(self):
        self.answers = [exceptions.StaleAttempt('old', 7)]
        self.releases.release(ENTRY)
        self.assertEqual([], self.journal.entries())

    def test_the_api_has_forgotten_the_numbers(self):
        self.answers = [exceptions.FarAttempt('far', 0)]
        self.releases.release(ENTRY)
        self.assertEqual([(ENTRY.role, 3), (ENTRY.role, 0)], self.asked)
        self.assertEqual([], self.journal.entries())

    def test_one_that_fails_is_due(self):
        self.stuck = True
        self.assertRaises(exceptions.DeviceError, self.releases.release, ENTRY)
        self.assertEqual([], self.asked)
        # Also if the journal could not be written.
        self.assertTrue(self.releases.is_due(ENTRY))
        (left,) = self.journal.entries()
        self.assertEqual(attach_journal.Step.RELEASING, left.step)
        self.assertTrue(self.releases.is_due(left))
        self.stuck = False
        self.releases.release(left)
        self.assertFalse(self.releases.is_due(ENTRY))
