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

import itertools
import types

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.client import our_allocations
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from unit.virt.holding import test_attaching

INSTANCE, OTHER = test_attaching.INSTANCE, test_attaching.OTHER


class Killed(BaseException):
    """nova-compute dies."""


class TestChanges(test_attaching.AttachmentsTestCase):
    """The unit of the first card is replaced by that of the second."""

    def setUp(self):
        super().setUp()
        # Provider uuid -> the FPGAs that the instance has of it in Placement.
        self.allocated = {}
        self.patch(our_allocations, 'read', self.read)
        self.patch(our_allocations, 'take_away', self.take_away)
        self.acquire()
        (self.old,) = self.attachments.held.arqs_of(INSTANCE)
        self.allocated[self.old.device_rp_uuid] = 1
        self.attachments.plug(INSTANCE)
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

    def add(self):
        (added,) = self.attachments.add(
            INSTANCE, {self.old.uuid: self.spare}, self.claim
        )
        return added

    def assert_has(self, *arqs):
        """In the journal, the API, the drivers and Placement."""
        self.assertEqual(arqs, self.attachments.held.arqs_of(INSTANCE))
        self.assertEqual(list(arqs), self.attachments.held.arqs())
        self.assertEqual(
            [arq.uuid for arq in arqs], [arq['uuid'] for arq in self.arqs()]
        )
        self.assertEqual({arq.handle for arq in arqs}, self.driver.plugged)
        self.assertEqual(
            {arq.device_rp_uuid: 1 for arq in arqs}, self.allocated
        )
        self.assertFalse(self.attachments.settle(INSTANCE))

    def test_the_other_unit_takes_its_place(self):
        with self.attachments.changing(INSTANCE):
            added = self.add()
            self.assertEqual(
                (self.old,), self.attachments.held.arqs_of(INSTANCE)
            )
            self.attachments.plug_added(INSTANCE, [added])
            self.attachments.commit(INSTANCE, {self.old.uuid: added})
            self.assertEqual((added,), self.attachments.held.arqs_of(INSTANCE))
            # No one else gets the old one meanwhile.
            self.assertEqual([added, self.old], self.attachments.held.arqs())
        self.assert_has(added)
        self.assertEqual([self.old.handle.uuid], self.released)
        self.assertEqual(self.old.group, added.group)

    def test_after_a_move_that_the_api_has_not_heard_of(self):
        roles = arq_types.Role.ACTIVE, arq_types.Role.OLD
        self.attachments.move(INSTANCE, *roles)
        self.api.refuse = True
        self.attachments.move(INSTANCE, *reversed(roles))
        self.api.refuse = False
        self.change()
        (now,) = self.attachments.held.arqs_of(INSTANCE)
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

        def change():
            with self.attachments.changing(INSTANCE):
                self.attachments.add(
                    INSTANCE, {self.old.uuid: self.spare}, refuse
                )

        self.assertRaises(exceptions.Conflict, change)
        self.assert_has(self.old)

    def test_the_api_has_none_free(self):
        self.acquire(OTHER, 1)

        def change():
            with self.attachments.changing(INSTANCE):
                self.add()

        self.assertRaises(exceptions.AcceleratorsBusy, change)
        self.assertEqual((self.old,), self.attachments.held.arqs_of(INSTANCE))
        self.assertEqual({self.old.device_rp_uuid: 1}, self.allocated)

    def test_the_answer_is_lost(self):
        """The API has bound a unit of which the journal knows nothing."""
        client = self.attachments._api

        def lose(*arguments):
            client.replacements(*arguments)
            raise exceptions.ServiceUnavailable('no answer')

        self.attachments._api = types.SimpleNamespace(replacements=lose)

        def change():
            with self.attachments.changing(INSTANCE):
                self.add()

        self.assertRaises(exceptions.ServiceUnavailable, change)
        self.assert_has(self.old)

    def change(self):
        with self.attachments.changing(INSTANCE):
            added = self.add()
            self.attachments.plug_added(INSTANCE, [added])
            self.attachments.commit(INSTANCE, {self.old.uuid: added})

    def test_killed_at_each_step(self):
        """The next nova-compute ends or undoes it, once no guest has it."""
        steps = Steps()
        for target, names in (
            (attach_journal.AttachJournal, ('write',)),
            (accelerator_api.AcceleratorApi, ('replacements', 'adopt')),
            (test_attaching.RecordingDriver, ('plug', 'unplug')),
            (our_allocations, ('take_away',)),
            (TestChanges, ('claim',)),
        ):
            for name in names:
                self.patch(target, name, steps.counted(getattr(target, name)))
        outcomes = set()
        for is_done in (False, True):
            for survived in itertools.count():
                steps.kill_after(survived, is_done)
                try:
                    self.change()
                except Killed:
                    steps.stop()
                else:
                    steps.stop()
                    break
                outcomes.add(self.settle_later())
        self.assertEqual({'undone', 'done'}, outcomes)

    def settle_later(self):
        """Restart, and compare all; the next change is the other way.

        :returns: how the change has ended
        """
        self.attachments = self.restarted()
        for arq in self.attachments._changes.leaving(INSTANCE) or ():
            self.in_guests = {arq.handle.uuid}
            self.attachments.retry()
            self.assertIn(arq, self.attachments.held.arqs())
        self.in_guests = set()
        self.attachments.retry()
        self.attachments.plug(INSTANCE)
        (now,) = self.attachments.held.arqs_of(INSTANCE)
        self.assert_has(now)
        if now == self.old:
            return 'undone'
        self.old, self.spare = now, self.old.device_rp_uuid
        return 'done'


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
