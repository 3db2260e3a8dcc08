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

import contextlib
import dataclasses
import pathlib
import types

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import intents
from unit.virt.holding import test_attach_journal
from unit.virt.holding import test_intents

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'
THIRD = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a03'
ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD
ACQUIRING = attach_journal.AttachStep.ACQUIRING
HELD = attach_journal.AttachStep.HELD
RELEASING = attach_journal.AttachStep.RELEASING

an_arq = test_intents.an_arq


class TestHold(testtools.TestCase):
    """What the journal has in the end, and what is unplugged."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.journal = attach_journal.AttachJournal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.answers = []
        self.journaled = []
        self.unplugged = []
        self.released = []
        self.attempts = attempts.Attempts(
            'compute1',
            self.journal,
            holdings.Holdings(self.journal),
            None,
            types.SimpleNamespace(unplug_all=self.unplugged.extend),
            types.SimpleNamespace(released=lambda arqs: None),
            types.SimpleNamespace(
                retry_later=lambda *_of: contextlib.nullcontext(),
                release=self.released.append,
            ),
            None,
        )

    def ask(self, _api, entry):
        self.journaled.append(self.journal.entries())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def hold(self, *answers, before=None, **more):
        """The journal afterwards, if the API answers so in turn."""
        self.answers = list(answers)
        if before is not None:
            self.journal.write(before)
        intent = intents.Intent(INSTANCE, ACTIVE, self.ask, **more)
        if isinstance(answers[-1], Exception):
            self.assertRaises(
                type(answers[-1]), self.attempts.hold, intent, before
            )
        else:
            self.attempts.hold(intent, before)
        return self.journal.entries()

    def held(self, *numbers, attempt=1, instance=INSTANCE):
        return attach_journal.AttachEntry(
            instance, ACTIVE, attempt, HELD, tuple(map(an_arq, numbers))
        )

    def test_the_intent_is_journaled_first(self):
        self.assertEqual([self.held(1)], self.hold((an_arq(1),)))
        self.assertEqual(
            [[attach_journal.AttachEntry(INSTANCE, ACTIVE, 1, ACQUIRING)]],
            self.journaled,
        )

    def test_what_is_replaced_is_unplugged(self):
        self.assertEqual(
            [self.held(2, 3, attempt=2)],
            self.hold((an_arq(2), an_arq(3)), before=self.held(1, 2)),
        )
        self.assertEqual([an_arq(1)], self.unplugged)

    def test_what_goes_is_given_back_first(self):
        going = dataclasses.replace(self.held(1, attempt=4), step=RELEASING)
        self.assertEqual(
            [self.held(2, attempt=5)],
            self.hold((an_arq(2),), before=going),
        )
        self.assertEqual([going], self.released)
        self.assertEqual([], self.unplugged)

    def test_nothing_before(self):
        self.assertEqual([], self.hold(exceptions.Conflict('no')))

    def test_what_it_held_stays(self):
        before = self.held(1)
        self.assertEqual(
            [before],
            self.hold(
                exceptions.StaleAttempt('old', 7),
                exceptions.Conflict('no'),
                before=before,
            ),
        )

    def test_what_may_have_been_bound_is_to_be_released(self):
        for fault in (exceptions.ServiceUnavailable('away'), KeyError('bug')):
            [entry] = self.hold(exceptions.StaleAttempt('old', 7), fault)
            self.assertEqual(
                (8, attach_journal.AttachStep.RELEASING),
                (entry.attempt, entry.step),
            )

    def test_what_a_guest_may_have_stays(self):
        self.assertEqual(
            [self.held(1, 2, attempt=2)],
            self.hold(
                exceptions.ServiceUnavailable('away'),
                before=self.held(1),
                arqs=(an_arq(2),),
            ),
        )

    def test_what_the_api_has_is_journaled_when_it_has_said_so_again(self):
        given = {'arqs': (an_arq(1),), 'listed_attempt': 5}
        for fault in (
            exceptions.ServiceUnavailable('away'),
            exceptions.StaleAttempt('old', 7),
        ):
            self.assertEqual([], self.hold(fault, **given))
        self.assertEqual(
            [self.held(1, attempt=6)], self.hold((an_arq(1),), **given)
        )

    def refused(self, *numbers, **more):
        """What is released if others have the first and the third."""
        for number, instance in (1, OTHER), (3, THIRD):
            self.journal.write(self.held(number, instance=instance))
        intent = intents.Intent(INSTANCE, ACTIVE, self.ask, **more)
        self.answers = [tuple(map(an_arq, numbers))]
        fault = self.assertRaises(
            exceptions.Conflict, self.attempts.hold, intent, None
        )
        self.assertEqual(
            '; '.join(
                f'the accelerator API gives {address} of host compute1 to '
                f"instance {INSTANCE}, and by the host's journal instance "
                f'{owner} has it'
                for address, owner in (
                    ('0000:01:00.0', OTHER),
                    ('0000:03:00.0', THIRD),
                )
            ),
            str(fault),
        )
        self.assertIn(
            f'Accelerators are refused: {fault}. Has the database',
            self.log.output,
        )
        return [entry.arqs for entry in self.released]

    def test_what_others_have_is_refused_and_the_rest_given_back(self):
        self.assertEqual([(an_arq(2),)], self.refused(1, 2, 3))

    def test_what_a_guest_may_have_is_not_given_back(self):
        arqs = tuple(map(an_arq, (1, 2, 3)))
        for attempt in (None, 5):
            self.assertEqual(
                [], self.refused(arqs=arqs, listed_attempt=attempt)
            )
        self.assertEqual([], self.journaled)

    def test_nor_if_others_get_it_meanwhile(self):
        def ask(_api, _entry):
            self.journal.write(self.held(1, instance=OTHER))
            return (an_arq(1),)

        for attempt in (None, 5):
            intent = intents.Intent(
                INSTANCE, ACTIVE, ask, (an_arq(1),), attempt
            )
            self.assertRaises(
                exceptions.Conflict, self.attempts.hold, intent, None
            )
            for entry in self.journal.entries():
                self.journal.remove(entry)
        self.assertEqual([], self.released)


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

    def adopt(self, instance_uuid, role, attempt, arq_uuids, is_new):
        """It has what is listed."""
        return test_attach_journal.an_entry().arqs


class TestMend(testtools.TestCase):
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
        self.journal = attach_journal.AttachJournal(self.directory)
        return attempts.Attempts(
            'compute1',
            self.journal,
            holdings.Holdings(self.journal),
            self.api,
            None,
            None,
            None,
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
            dataclasses.replace(
                test_attach_journal.an_entry(),
                attempt=self.binding().attempt + 1,
            ),
            self.journal.read(INSTANCE, ACTIVE),
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
        attach_journal.AttachJournal(self.directory).write(moved)
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
