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

from unit.virt import started as started_module


class Instance:
    uuid = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'


class TestHostAccelerators(started_module.StartedTestCase):

    def test_arqs_of_our_providers_are_ours(self):
        started = self.start()
        provider = started._publisher.view.layout.providers[0].uuid
        ours, cyborgs = ({'uuid': name, 'device_rp_uuid': rp_uuid,
                          'hostname': self.libvirt.host.get_hostname()}
                         for name, rp_uuid in (
                             ('ours', provider), ('theirs', Instance.uuid)))
        self.assertEqual((('ours',), (cyborgs,)),
                         started.split([ours, cyborgs]))
        self.assertEqual(((), ()), started.split(None))

    def test_our_mdevs_are_known_before_they_are_made(self):
        started = self.start()
        (vgpu,) = (device for device in started._publisher.view.devices
                   if device.driver == 'mdev')
        for handle in vgpu.deployables[0].handles:
            self.assertTrue(started.owns_mdev(handle.uuid))
        self.assertFalse(started.owns_mdev(Instance.uuid))
