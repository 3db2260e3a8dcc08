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

import types

import fixtures
from nova import exception
import oslo_messaging
import testtools

from nova_accel import exceptions
from nova_accel.model import arq
from nova_accel.virt import moving_bindings

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
ACTIVE, OLD, INCOMING = arq.Role.ACTIVE, arq.Role.OLD, arq.Role.INCOMING


class Attachments:
    """Of one instance: role -> attempt of what it holds."""

    def __init__(self, **held):
        self.held = {arq.Role(role): attempt
                     for role, attempt in held.items()}
        self.stuck = False

    def attempts(self, role):
        return {INSTANCE: self.held[role]} if role in self.held else {}

    def holds(self, instance_uuid, role=ACTIVE):
        return role in self.held

    def move(self, instance_uuid, source, target):
        if self.stuck:
            raise exceptions.DeviceError('stuck')
        if source in self.held:
            self.held[target] = self.held.pop(source)

    def release(self, instance_uuid, role, attempt):
        if self.held.get(role) == attempt:
            del self.held[role]


class TestSettle(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.instance = types.SimpleNamespace(
            uuid=INSTANCE, host='there', old_flavor=None)
        self.statuses = []
        self.destination = 'there'
        self.guest = False
        self.fault = None
        self.meanwhile = lambda: None
        for name, functions in (
                ('Instance', {'get_by_uuid': self.get_instance}),
                ('MigrationList', {'get_by_filters': self.get_migrations})):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.objects.{name}', types.SimpleNamespace(**functions)))

    def get_instance(self, context, uuid, expected_attrs):
        if self.fault is not None:
            raise self.fault
        self.assertEqual(INSTANCE, uuid)
        return self.instance

    def get_migrations(self, context, filters):
        self.assertEqual({'instance_uuid': INSTANCE}, filters)
        self.meanwhile()
        return [types.SimpleNamespace(
            status=status, dest_compute=self.destination)
            for status in self.statuses]

    def settled(self, **held):
        attachments = Attachments(**held)
        self.settle(attachments)
        return attachments.held

    def settle(self, attachments):
        moving_bindings.settle(attachments, 'here', self.has_guest)

    def has_guest(self, instance):
        self.assertIs(self.instance, instance)
        return self.guest

    def test_nova_is_not_asked_for_nothing(self):
        self.fault = AssertionError('asked')
        self.assertEqual({ACTIVE: 1}, self.settled(active=1))

    def test_kept_until_confirmed_or_reverted(self):
        for status in ('pre-migrating', 'migrating', 'post-migrating',
                       'finished', 'confirming', 'reverting'):
            self.statuses = ['error', status]
            self.assertEqual({OLD: 1}, self.settled(old=1), status)

    def test_released_when_the_destination_failed(self):
        self.statuses = ['error']
        self.assertEqual({}, self.settled(old=1))

    def test_released_when_it_failed_on_the_same_host(self):
        self.statuses = ['error']
        self.instance.host = 'here'
        self.instance.old_flavor = object()
        self.assertEqual({ACTIVE: 2}, self.settled(old=1, active=2))

    def test_released_when_the_instance_is_gone(self):
        self.fault = exception.InstanceNotFound(instance_id=INSTANCE)
        self.assertEqual({}, self.settled(old=1))

    def test_restored_when_a_revert_failed(self):
        self.statuses = ['error']
        self.instance.host = 'here'
        self.assertEqual({ACTIVE: 1}, self.settled(old=1))

    def test_what_is_active_stays_so(self):
        self.statuses = ['reverted']
        self.instance.host = 'here'
        self.assertEqual({ACTIVE: 2}, self.settled(old=1, active=2))

    def test_a_new_migration_may_begin_meanwhile(self):
        attachments = Attachments(old=1)
        self.meanwhile = lambda: attachments.held.update({OLD: 2})
        self.settle(attachments)
        self.assertEqual({OLD: 2}, attachments.held)

    def test_nothing_is_done_while_nova_does_not_answer(self):
        self.fault = oslo_messaging.MessagingTimeout()
        self.assertEqual({OLD: 1}, self.settled(old=1))

    def test_a_stuck_device_is_tried_again(self):
        self.instance.host = 'here'
        attachments = Attachments(old=1)
        attachments.stuck = True
        self.settle(attachments)
        self.assertEqual({OLD: 1}, attachments.held)

    def test_awaited_while_it_may_come(self):
        for self.destination in (None, 'here'):
            for status in ('accepted', 'queued', 'preparing', 'running'):
                self.statuses = ['failed', status]
                self.assertEqual({INCOMING: 1}, self.settled(incoming=1))

    def test_not_awaited_when_it_goes_elsewhere_or_nowhere(self):
        for self.destination, status in (
                ('elsewhere', 'running'), ('here', 'failed'),
                ('here', 'error'), ('here', 'cancelled')):
            self.statuses = [status]
            self.assertEqual({}, self.settled(incoming=1))

    def test_active_when_it_has_come(self):
        self.destination, self.statuses = 'here', ['completed']
        self.instance.host = 'here'
        self.assertEqual({ACTIVE: 1}, self.settled(incoming=1))

    def test_a_guest_that_has_come_without_novas_notice(self):
        self.destination, self.statuses = 'here', ['error']
        self.guest = True
        self.assertEqual({INCOMING: 1}, self.settled(incoming=1))

    def test_not_awaited_when_the_instance_is_gone(self):
        self.fault = exception.InstanceNotFound(instance_id=INSTANCE)
        self.assertEqual({}, self.settled(incoming=1))


class TestRestore(testtools.TestCase):

    def test_what_was_set_aside_is_active(self):
        attachments = Attachments(old=1)
        moving_bindings.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 1}, attachments.held)

    def test_what_is_active_stays_so(self):
        attachments = Attachments(active=2, old=1)
        moving_bindings.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 2, OLD: 1}, attachments.held)

    def restored(self, **fields):
        attachments = Attachments(old=1)
        moving_bindings.restore_reverted(
            attachments, types.SimpleNamespace(**{
                'uuid': INSTANCE, 'host': 'here', 'old_flavor': None,
                **fields}), 'here')
        return ACTIVE in attachments.held

    def test_only_what_a_revert_brought_back(self):
        self.assertTrue(self.restored())
        self.assertFalse(self.restored(host='there'))
        self.assertFalse(self.restored(old_flavor=object()))
