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

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import pci_address
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import intents

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD
Step = attach_journal.AttachStep


def an_arq(bus):
    return arq_types.Arq(
        f'arq{bus}',
        arq_types.State.BOUND,
        'gpu',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            f'handle{bus}', pci_address.PciAddress(0, bus, 0, 0)
        ),
    )


A, B = an_arq(1), an_arq(2)


class Api:
    """Says what it is asked for."""

    def acquire(self, instance_uuid, role, attempt, *wanted):
        return ('acquire', instance_uuid, role, attempt, *wanted)

    def adopt(self, instance_uuid, role, attempt, arq_uuids, is_new):
        return ('adopt', instance_uuid, role, attempt, list(arq_uuids), is_new)


class TestIntent(testtools.TestCase):
    """What is journaled first, and what the API is asked for then."""

    before = attach_journal.AttachEntry(INSTANCE, ACTIVE, 3, Step.HELD, (A,))

    def begin(self, intent, before, step, *arqs, attempt=4):
        entry = intent.begin(before, 4)
        self.assertEqual(
            (intent.instance_uuid, intent.role, attempt, step, arqs),
            (
                entry.instance_uuid,
                entry.role,
                entry.attempt,
                entry.step,
                entry.arqs,
            ),
        )
        return intent.ask(Api(), entry)

    def test_acquire(self):
        intent = intents.acquire(
            INSTANCE, 'project', 'gpu', [], OLD, frozenset({1}), True
        )
        asked = 'project', 'gpu', (), frozenset({1}), True
        self.assertEqual(
            ('acquire', INSTANCE, OLD, 4, *asked),
            self.begin(intent, None, Step.ACQUIRING),
        )

    def test_adopt(self):
        intent = intents.adopt(INSTANCE, ['arq2'], is_new=True)
        for before, step, arqs in (
            (None, Step.ACQUIRING, ()),
            (self.before, Step.HELD, (A,)),
        ):
            self.assertEqual(
                ('adopt', INSTANCE, ACTIVE, 4, ['arq2'], True),
                self.begin(intent, before, step, *arqs),
            )

    def test_take_over(self):
        """Beside what is held, and held already."""
        intent = intents.take_over(INSTANCE, [B])
        for before, arqs in (None, (B,)), (self.before, (A, B)):
            self.assertEqual(
                (
                    'adopt',
                    INSTANCE,
                    ACTIVE,
                    4,
                    [arq.uuid for arq in arqs],
                    False,
                ),
                self.begin(intent, before, Step.HELD, *arqs),
            )

    def test_recover(self):
        """All that is listed, also what is not usable."""
        intent = intents.recover(
            host_binding.Binding(INSTANCE, OLD, 6, ('arq1', 'arq2'), (A,))
        )
        self.assertTrue(intent.is_listed)
        self.assertEqual(
            ('adopt', INSTANCE, OLD, 7, ['arq1', 'arq2'], False),
            self.begin(intent, None, Step.HELD, A, attempt=7),
        )


class TestAgree(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journal = attach_journal.AttachJournal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.entry = attach_journal.AttachEntry(
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            attach_journal.AttachStep.ACQUIRING,
        )
        self.journal.write(self.entry)
        self.asked = []

    def journaled(self):
        return self.journal.read(INSTANCE, arq_types.Role.ACTIVE).attempt

    def agreed(self, *answers):
        """What the API answers one after the other: a fault, or a text."""
        coming = list(answers)

        def ask(entry):
            self.asked.append(entry.attempt)
            self.assertEqual(entry.attempt, self.journaled())
            answer = coming.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        entry, answer = intents.agree(self.journal, self.entry, ask)
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
