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
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'


class AttemptsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journal = attach_journal.Journal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.entry = attach_journal.Entry(
            INSTANCE, arq_types.Role.ACTIVE, 1, attach_journal.Step.ACQUIRING
        )


class TestAgreed(AttemptsTestCase):
    def setUp(self):
        super().setUp()
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

    def test_an_api_that_says_no_newest(self):
        self.assertEqual(
            (2, 'yes'), self.agreed(exceptions.StaleAttempt('raced'), 'yes')
        )

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


class TestGranted(AttemptsTestCase):
    """What the instance holds if the API gives nothing."""

    def journaled_after(self, *faults, before=None):
        """The journal after the API has failed so, one after the other."""
        self.journal.write(self.entry)
        coming = list(faults)

        def ask(_attempt):
            raise coming.pop(0)

        self.assertRaises(
            type(faults[-1]),
            attempts.granted,
            self.journal,
            self.entry,
            before,
            ask,
        )
        return list(self.journal.entries())

    def test_nothing_before(self):
        self.assertEqual([], self.journaled_after(exceptions.Conflict('no')))

    def test_what_it_held_stays(self):
        before = dataclasses.replace(
            self.entry, attempt=0, step=attach_journal.Step.HELD
        )
        self.assertEqual(
            [before],
            self.journaled_after(
                exceptions.StaleAttempt('old', 7),
                exceptions.Conflict('no'),
                before=before,
            ),
        )

    def test_what_may_have_been_bound_is_to_be_released(self):
        for fault in (exceptions.ServiceUnavailable('away'), KeyError('bug')):
            [entry] = self.journaled_after(
                exceptions.StaleAttempt('old', 7), fault
            )
            self.assertEqual(
                (8, attach_journal.Step.RELEASING), (entry.attempt, entry.step)
            )

    def test_what_a_guest_may_have_stays(self):
        self.entry = dataclasses.replace(
            self.entry, step=attach_journal.Step.HELD
        )
        self.assertEqual(
            [self.entry],
            self.journaled_after(exceptions.ServiceUnavailable('away')),
        )
