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
import time

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'


class TestAgreed(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journal = attach_journal.Journal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.entry = attach_journal.Entry(
            INSTANCE, arq_types.Role.ACTIVE, 1, attach_journal.Step.ACQUIRING
        )
        self.journal.write(self.entry)
        self.asked = []

    def journaled(self):
        return self.journal.read(INSTANCE, arq_types.Role.ACTIVE).attempt

    def agreed(self, *answers):
        """What the API answers one after the other: a fault, or a text."""
        coming = list(answers)

        def ask(attempt):
            self.asked.append(attempt)
            self.assertEqual(attempt, self.journaled())
            answer = coming.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        entry, answer = attempts.agreed(self.journal, self.entry, ask)
        self.assertEqual(
            entry, self.journal.read(INSTANCE, arq_types.Role.ACTIVE)
        )
        return entry.attempt, answer

    def test_the_first_number_is_new(self):
        self.assertEqual((1, 'yes'), self.agreed('yes'))

    def test_the_host_counts_on(self):
        self.assertEqual(
            (8, 'yes'), self.agreed(exceptions.StaleAttempt('old', 7), 'yes')
        )

    def test_the_host_counts_on_from_less(self):
        """Its own number was that of a clock that was far ahead."""
        self.assertEqual(
            (1, 'yes'), self.agreed(exceptions.FarAttempt('far', 0), 'yes')
        )

    def test_an_api_of_the_release_before(self):
        before = time.time_ns()
        attempt, _answer = self.agreed(exceptions.StaleAttempt('old'), 'yes')
        self.assertLessEqual(before, attempt)

    def test_not_for_ever(self):
        self.assertRaises(
            exceptions.StaleAttempt,
            self.agreed,
            *(
                exceptions.StaleAttempt('old', number)
                for number in (7, 9, 11, 13)
            ),
        )
        self.assertEqual([1, 8, 10], self.asked)
        self.assertEqual(10, self.journaled())

    def test_no_other_fault_is_tried_again(self):
        for fault in (
            exceptions.AcceleratorsBusy('busy'),
            exceptions.ServiceUnavailable('away'),
            exceptions.Conflict('no'),
        ):
            self.asked.clear()
            self.assertRaises(type(fault), self.agreed, fault)
            self.assertEqual([1], self.asked)
