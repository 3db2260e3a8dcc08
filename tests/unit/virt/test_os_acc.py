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

from concurrent import futures

from nova import conf as nova_conf

from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.virt import os_acc
from unit.virt import started

CONF = nova_conf.CONF
INSTANCE = {'uuid': '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01', 'name': 'vm',
            'project_id': 'project'}


class TestOsAcc(started.StartedTestCase):

    def setUp(self):
        super().setUp()
        self.host = self.start()
        self.os_acc = os_acc.OsAcc(self.host, self.properties)
        self.images = []

    def properties(self, image_id):
        self.images.append(image_id)
        return {'accel:function_id': 'x'} if image_id == 'bad' else {}

    def plug(self, resource_class, amount=1, key='nova_accel', **info):
        """As the specification shows it."""
        device_profile.create(
            resource_class, [{f'resources:{resource_class}': '1'}] * amount)
        provider = next(
            provider for provider
            in self.host._publisher.view.layout.providers
            if resource_class in provider.totals)
        with futures.ThreadPoolExecutor(max_workers=1) as executor:
            return executor.submit(
                self.os_acc.plug, {**INSTANCE, **info}, {
                    'uuid': provider.uuid,
                    'resources': {resource_class: amount},
                    'traits': sorted(provider.traits),
                }, {f'{key}:device_profile': resource_class}).result(60)

    def test_it_is_ready_when_devices_are_published(self):
        self.assertIsNone(self.os_acc.initialize())
        self.assertTrue(self.host._publisher._published.is_set())

    def test_it_is_not_ready(self):
        self.os_acc.initialize()
        self.host._publisher._published.clear()
        self.api.refuse = True
        CONF.set_override('publish_timeout_s', 0, 'nova_accel')
        self.addCleanup(
            CONF.clear_override, 'publish_timeout_s', 'nova_accel')
        self.assertRaises(
            exceptions.CyborgAgentUnavailable, self.os_acc.initialize)

    def test_functions(self):
        plugged = self.plug('CUSTOM_QAT', 2, key='accel')
        held = self.host.attachments.held_by(INSTANCE['uuid'])
        self.assertEqual([{'pci_id': str(arq.handle.address)}
                          for arq in held], plugged)
        self.assertEqual(2, len(plugged))
        self.assertEqual(2, self.os_acc.unplug(INSTANCE))
        self.assertEqual(0, self.os_acc.unplug(INSTANCE))

    def test_a_mediated_device(self):
        (plugged,) = self.plug('VGPU', image_id='good')
        (held,) = self.host.attachments.held_by(INSTANCE['uuid'])
        self.assertEqual({'mdev_uuid': held.handle.uuid}, plugged)
        self.assertEqual(['good'], self.images)

    def test_what_fails_holds_nothing(self):
        self.assertRaises(exceptions.InvalidDeviceProfile, self.plug,
                          'FPGA', image_id='bad')
        self.assertFalse(self.host.attachments.holds(INSTANCE['uuid']))

    def test_a_flavor_without_a_profile(self):
        self.assertRaises(exceptions.InvalidRequest, self.os_acc.plug,
                          INSTANCE, {}, {})

    def test_what_is_not_given_back_yet(self):
        self.plug('CUSTOM_QAT')
        self.api.refuse = True
        error = self.assertRaises(
            exceptions.DeviceError, self.os_acc.unplug, INSTANCE)
        self.assertIn('vm', str(error))
