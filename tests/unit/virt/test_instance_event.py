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
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import instance_action
import testtools

from nova_accel import exceptions
from nova_accel.virt import instance_event

_INSTANCE = types.SimpleNamespace(
    uuid='5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01', host='host1'
)

_FAULT = exceptions.DeviceError(
    '0000:99:00.0 of host9 is stuck', public='the device is stuck'
)


class TestTold(testtools.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.context = nova_context.RequestContext(
            'user', 'project', is_admin=False
        )
        self.events = []
        self.error = None
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.objects.InstanceActionEvent.create', self.create
            )
        )

    def create(self, event, instance_uuid, request_id):
        """In the place of Nova's conductor."""
        if self.error is not None:
            raise self.error
        self.events.append((event, instance_uuid, request_id))

    def tell(self, fault, context=None):
        with instance_event.record_fault(context, _INSTANCE):
            raise fault

    def test_the_name_is_for_the_owner_and_the_rest_for_administrators(self):
        self.assertRaises(
            exceptions.DeviceError, self.tell, _FAULT, self.context
        )
        [(event, instance_uuid, request_id)] = self.events
        self.assertIsInstance(event, instance_action.InstanceActionEvent)
        self.assertEqual(
            (_INSTANCE.uuid, self.context.request_id),
            (instance_uuid, request_id),
        )
        self.assertEqual(
            ('accelerators: the device is stuck', 'the device is stuck'),
            (event.event, event.details),
        )
        self.assertEqual(('Error', 'host1'), (event.result, event.host))
        self.assertIn('0000:99:00.0 of host9 is stuck', event.traceback)

    def test_what_nova_can_store(self):
        fault = exceptions.DeviceError('\udcff' * 99_999, public='p' * 999)
        self.assertRaises(
            exceptions.DeviceError, self.tell, fault, self.context
        )
        [(event, _uuid, _request)] = self.events
        self.assertEqual(255, len(event.event))
        self.assertLess(len(event.traceback.encode()), 1 << 16)

    def test_the_fault_is_raised_whatever_becomes_of_the_event(self):
        for self.error, warning in (
            (
                exception.InstanceActionNotFound(
                    request_id='', instance_uuid=''
                ),
                '',
            ),
            (OSError('no conductor'), 'no conductor'),
        ):
            self.assertRaises(
                exceptions.DeviceError, self.tell, _FAULT, self.context
            )
            self.assertIn(warning, self.log.output)
            self.assertEqual(bool(warning), bool(self.log.output))

    def test_without_an_action_there_is_no_event(self):
        self.assertRaises(exceptions.DeviceError, self.tell, _FAULT)
        self.assertRaises(OSError, self.tell, OSError(), self.context)
        self.assertEqual([], self.events)
