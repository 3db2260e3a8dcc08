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

from functional import base
from nova_accel.model.profiles import device_profile

_BIND = 'accelerator_request.bind'
_UNBIND = 'accelerator_request.unbind'


class TestNotifications(base.AcceleratorTestCase):
    """What a server uses from when to when can be metered."""

    def told(self, event_type):
        return [
            message['payload']['nova_object.data']
            for message in self.notifier.versioned_notifications
            if message['event_type'] == event_type
        ]

    def used(self, event_type):
        """(ARQ, resource class, project, server, host) of each, sorted."""
        return sorted(
            (
                arq['uuid'],
                arq['resource_class'],
                payload['project_id'],
                payload['instance_uuid'],
                payload['hostname'],
            )
            for payload in self.told(event_type)
            for arq in (
                each['nova_object.data']
                for each in payload['accelerator_requests']
            )
        )

    def test_from_boot_to_deletion(self):
        server = self.boot_with(base.FPGA, base.VGPU)
        classes = {0: 'FPGA', 1: 'VGPU'}
        expected = sorted(
            (
                arq['uuid'],
                classes[arq['device_profile_group_id']],
                server['tenant_id'],
                server['id'],
                'host1',
            )
            for arq in self.arqs(server)
        )
        self.assertEqual(2, len(expected))
        self.assertEqual(expected, self.used(f'{_BIND}.end'))
        self.assertEqual([], self.told(f'{_UNBIND}.start'))
        self.delete(server)
        self.assertEqual(expected, self.used(f'{_BIND}.end'))
        self.assertEqual(expected, self.used(f'{_UNBIND}.end'))
        for action in (_BIND, _UNBIND):
            self.assertEqual(1, len(self.told(f'{action}.start')))
            self.assertEqual([], self.told(f'{action}.error'))


class TestCompat(TestNotifications):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
