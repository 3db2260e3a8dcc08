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
import itertools
import types

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.client import our_allocations
from nova_accel.db import server_arqs
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from unit.virt.holding import test_attaching

INSTANCE, OTHER = test_attaching.INSTANCE, test_attaching.OTHER


class Killed(BaseException):
    """nova-compute dies."""


class ChangesTestCase(test_attaching.AttachmentsTestCase):
    """Changes from one of two cards, to the other one, both, or none."""

    def setUp(self):
        super().setUp()
        # Provider uuid -> the FPGAs that the instance has of it in Placement.
        self.allocated = {}
        self.patch(our_allocations, 'read', self.read)
        self.patch(our_allocations, 'take_away', self.take_away)
        self.spare = self.host.allocated(1).rp_uuid

    @property
    def view(self):
        return types.SimpleNamespace(
            **vars(super().view),
            layout=types.SimpleNamespace(
                uuids=frozenset(
                    self.host.allocated(bus).rp_uuid for bus in range(2)
                )
            ),
        )

    def read(self, consumer):
        return our_allocations.Allocated(
            consumer,
            {
                'node': {'VCPU': 1},
                **{
                    rp_uuid: {'FPGA': amount}
                    for rp_uuid, amount in self.allocated.items()
                },
            },
            1,
            'project',
            'user',
        )

    def take_away(self, consumer, resources):
        for rp_uuid, amounts in resources.items():
            self.allocated[rp_uuid] -= amounts['FPGA']
            if not self.allocated[rp_uuid]:
                del self.allocated[rp_uuid]

    def claim(self):
        self.allocated[self.spare] = 1

    def hold(self):
        self.acquire()
        (self.old,) = self.held()
        self.allocated[self.old.device_rp_uuid] = 1
        self.attachments.plug(INSTANCE)

    def held(self):
        return self.attachments.held.arqs_of(INSTANCE)

    def add(self, kept=None, name='fpga'):
        wanted = arq_types.WantedArq(
            name, 0, {'resources:FPGA': '1'}, self.spare
        )
        (added,) = self.attachments.add(
            INSTANCE, 'project', [wanted], self.claim, kept
        )
        return added

    def assert_has(self, *arqs):
        """In the journal, the API, the drivers and Placement."""
        self.assertEqual(arqs, self.held())
        self.assertEqual(list(arqs), self.attachments.held.arqs())
        self.assertEqual(
            [
                (arq.uuid, arq.device_profile_name, arq.handle.uuid)
                for arq in sorted(arqs, key=lambda each: each.uuid)
            ],
            [
                (
                    arq['uuid'],
                    arq['device_profile_name'],
                    arq['attach_handle_uuid'],
                )
                for arq in sorted(self.arqs(), key=lambda each: each['uuid'])
            ],
        )
        self.assertEqual({arq.handle for arq in arqs}, self.driver.plugged)
        self.assertEqual(
            {arq.device_rp_uuid: 1 for arq in arqs}, self.allocated
        )
        self.assertFalse(self.attachments.settle(INSTANCE))

    def kill_at_each_step(self, change, check):
        """Kill nova-compute before and after each step of a change.

        :param check: is called after each restart, and says how the change
            has ended
        """
        steps = Steps()
        for target, names in (
            (attach_journal.AttachJournal, ('write', 'remove')),
            (
                accelerator_api.AcceleratorApi,
                ('additions', 'keep', 'release'),
            ),
            (test_attaching.RecordingDriver, ('plug', 'unplug')),
            (our_allocations, ('take_away',)),
            (ChangesTestCase, ('claim', 'name_profile')),
        ):
            for name in names:
                self.patch(target, name, steps.counted(getattr(target, name)))
        outcomes = set()
        for is_done in (False, True):
            for survived in itertools.count():
                steps.kill_after(survived, is_done)
                try:
                    change()
                except Killed:
                    steps.stop()
                else:
                    steps.stop()
                    break
                self.settle_later()
                outcomes.add(check())
            check()
        return outcomes

    def settle_later(self):
        """Restart; what guests have stays until they have let go of it."""
        self.attachments = self.restarted()
        for arq in self.attachments.held.left_by(INSTANCE):
            self.in_guests = {arq.handle.uuid}
            self.attachments.retry()
            self.assertIn(arq, self.attachments.held.arqs())
        self.in_guests = set()
        self.attachments.retry()
        self.attachments.plug(INSTANCE)


class TestReplacing(ChangesTestCase):
    """The unit of the first card is replaced by that of the second."""

    def setUp(self):
        super().setUp()
        self.hold()

    def change(self):
        with self.attachments.changing(INSTANCE):
            added = self.add()
            self.attachments.plug_added(INSTANCE, [added])
            self.attachments.commit(INSTANCE, [added])

    def test_the_other_unit_takes_its_place(self):
        with self.attachments.changing(INSTANCE):
            added = self.add()
            self.assertEqual((self.old,), self.held())
            self.attachments.plug_added(INSTANCE, [added])
            self.attachments.commit(INSTANCE, [added])
            self.assertEqual((added,), self.held())
            # No one else gets the old one meanwhile.
            self.assertEqual([added, self.old], self.attachments.held.arqs())
        self.assert_has(added)
        self.assertEqual([self.old.handle.uuid], self.released)
        self.assertEqual(self.old.group, added.group)
        self.assertEqual({}, self.named)

    def test_after_a_move_that_the_api_has_not_heard_of(self):
        roles = arq_types.Role.ACTIVE, arq_types.Role.OLD
        self.attachments.move(INSTANCE, *roles)
        self.api.refuse = True
        self.attachments.move(INSTANCE, *reversed(roles))
        self.api.refuse = False
        self.change()
        (now,) = self.held()
        self.assertEqual(self.spare, now.device_rp_uuid)
        self.assert_has(now)

    def test_what_is_not_committed_leaves_again(self):
        def change():
            with self.attachments.changing(INSTANCE):
                self.attachments.plug_added(INSTANCE, [self.add()])
                raise exceptions.Conflict('the guest holds on')

        self.assertRaises(exceptions.Conflict, change)
        self.assert_has(self.old)

    def test_placement_refuses(self):
        def refuse():
            raise exceptions.Conflict('others have it')

        self.claim = refuse
        self.assertRaises(exceptions.Conflict, self.change)
        self.assert_has(self.old)

    def test_the_api_has_none_free(self):
        self.acquire(OTHER, 1)
        self.assertRaises(exceptions.AcceleratorsBusy, self.change)
        self.assertEqual((self.old,), self.held())
        self.assertEqual({self.old.device_rp_uuid: 1}, self.allocated)

    def test_the_answer_is_lost(self):
        """The API has bound a unit of which the journal knows nothing."""
        additions = accelerator_api.AcceleratorApi.additions

        def lose(*arguments):
            additions(*arguments)
            raise exceptions.ServiceUnavailable('no answer')

        self.patch(accelerator_api.AcceleratorApi, 'additions', lose)
        self.assertRaises(exceptions.ServiceUnavailable, self.change)
        self.assert_has(self.old)

    def test_the_guest_holds_on(self):
        """It keeps the old one, which is told once, until it is stopped."""
        kept = []
        keep = accelerator_api.AcceleratorApi.keep

        def count(client, *arguments):
            kept.append(arguments[-1])
            keep(client, *arguments)

        self.patch(accelerator_api.AcceleratorApi, 'keep', count)
        self.in_guests = {self.old.handle.uuid}
        self.change()
        self.attachments.retry()
        self.assertEqual([(self.old.uuid,)], kept)
        self.assertEqual(
            {self.old.uuid: True, self.held()[0].uuid: False},
            {
                row['uuid']: row['is_leaving']
                for row in server_arqs.get(INSTANCE)
            },
        )
        self.assertRaises(
            exceptions.Conflict, self.attachments.check_migratable, INSTANCE
        )
        self.assertRaises(exceptions.Conflict, self.add)
        self.in_guests = set()
        self.attachments.retry()
        self.assert_has(*self.held())

    def test_the_server_is_deleted_meanwhile(self):
        self.in_guests = {self.old.handle.uuid}
        self.change()
        self.attachments.release(INSTANCE)
        self.assert_nothing_left()

    def test_killed_at_each_step(self):
        """The next nova-compute ends or undoes it, once no guest has it."""

        def check():
            (now,) = self.held()
            self.assert_has(now)
            if now == self.old:
                return 'undone'
            # The next change is the other way.
            self.old, self.spare = now, self.old.device_rp_uuid
            return 'done'

        self.assertEqual(
            {'undone', 'done'}, self.kill_at_each_step(self.change, check)
        )


class TestSetting(ChangesTestCase):
    """A server with nothing gets one card, then both, then none."""

    def set(self, *kept, adds=True, name='other'):
        with self.attachments.changing(INSTANCE):
            arqs = [
                dataclasses.replace(arq, device_profile_name=name)
                for arq in kept
            ]
            if adds:
                added = self.add([arq.uuid for arq in kept], name)
                self.attachments.plug_added(INSTANCE, [added])
                arqs.append(added)
            self.attachments.commit(INSTANCE, arqs, is_renamed=True)

    def test_from_nothing_to_nothing(self):
        self.set()
        self.assert_has(*self.held())
        self.assertEqual({INSTANCE: 'other'}, self.named)
        self.set(adds=False)
        self.assert_has()
        self.assert_nothing_left()
        self.assertEqual({INSTANCE: None}, self.named)

    def test_what_stays_is_renamed(self):
        self.hold()
        self.set(self.old)
        kept, added = self.held()
        self.assertEqual(self.old.handle, kept.handle)
        self.assert_has(kept, added)

    def test_nova_is_away(self):
        """All else is done, and Nova's flavor follows."""
        self.hold()

        self.name_fault = exceptions.ServiceUnavailable('Nova is away')
        self.assertRaises(exceptions.ServiceUnavailable, self.set, self.old)
        self.attachments.retry()
        self.name_fault = None
        self.assertEqual({}, self.named)
        self.attachments = self.restarted()
        self.attachments.retry()
        self.assertEqual({INSTANCE: 'other'}, self.named)
        self.assert_has(*self.held())

    def test_nothing_is_left_of_a_refusal(self):
        self.acquire(OTHER, 1)
        self.assertRaises(exceptions.AcceleratorsBusy, self.set)
        self.assertEqual((), self.held())
        self.assertEqual({}, self.allocated)
        self.assertEqual(
            {OTHER}, {arq['instance_uuid'] for arq in self.arqs()}
        )

    def test_killed_at_each_step_of_the_first(self):
        def check():
            arqs = self.held()
            self.assert_has(*arqs)
            self.assertEqual(
                arqs[0].device_profile_name if arqs else None,
                self.named.get(INSTANCE),
            )
            if not arqs:
                return 'undone'
            self.set(adds=False)
            self.assert_has()
            return 'done'

        self.assertEqual(
            {'undone', 'done'}, self.kill_at_each_step(self.set, check)
        )

    def test_killed_at_each_step_of_the_last(self):
        def begin():
            self.set()
            self.before = self.held()

        def check():
            arqs = self.held()
            self.assert_has(*arqs)
            self.assertEqual(
                'other' if arqs else None, self.named.get(INSTANCE)
            )
            if arqs:
                self.assertEqual(self.before, arqs)
                return 'undone'
            begin()
            return 'done'

        begin()
        self.assertEqual(
            {'undone', 'done'},
            self.kill_at_each_step(lambda: self.set(adds=False), check),
        )


class Steps:
    """Counts what outlives nova-compute, and ends it at one of the steps."""

    def __init__(self):
        self.stop()

    def stop(self):
        self.left = None

    def kill_after(self, survived, is_done):
        """:param is_done: whether the last step is done"""
        self.left, self.is_done = survived, is_done

    def counted(self, function):
        def call(*args, **kwargs):
            if self.left is not None:
                self.left -= 1
                if self.left == -1 and self.is_done:
                    function(*args, **kwargs)
                if self.left < 0:
                    raise Killed()
            return function(*args, **kwargs)

        return call
