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

import os_resource_classes as orc

from nova_accel.testing import cloud
from nova_accel.testing import devices

VGPU_FLAVOR = {'resources:VGPU': '1'}


class TestNovasOwnVgpus(cloud.Cloud):
    """Nova's vGPUs and ours in one host never mix."""

    ADMIN_API = True

    def setUp(self):
        super().setUp()
        self.start_mixed_compute('host1')

    def test_a_native_vgpu_comes_from_novas_provider(self):
        server = self._create_server(
            flavor_id=self._create_flavor(extra_spec=VGPU_FLAVOR),
            networks='none')
        self.assert_native(server)
        self._delete_server(server)

    def test_a_numbered_native_group_too(self):
        server = self._create_server(
            flavor_id=self._create_flavor(
                extra_spec={'resources1:VGPU': '1'}),
            networks='none')
        self.assert_native(server)

    def assert_native(self, server):
        allocations = self._get_allocations_by_server_uuid(server['id'])
        ours = {provider['uuid']
                for provider in self.accelerator_providers('host1')}
        taken = {uuid for uuid, allocation in allocations.items()
                 if orc.VGPU in allocation['resources']}
        self.assertEqual(1, len(taken))
        self.assertFalse(taken & ours)
        (hostdev,) = self.hostdevs(server)
        self.assertEqual('mdev', hostdev.get('type'))

    def test_ours_comes_from_our_provider(self):
        self.create_profile('vgpu', [{'resources:VGPU': '1'}])
        server = self._create_server(
            flavor_id=self.create_accel_flavor('vgpu'), networks='none')
        (arq,) = self.arqs(server)
        allocations = self._get_allocations_by_server_uuid(server['id'])
        self.assertEqual(
            [arq['device_rp_uuid']],
            [uuid for uuid, allocation in allocations.items()
             if orc.VGPU in allocation['resources']])
        self.assertEqual(1, len(self.hostdevs(server)))

    def test_both_in_one_flavor(self):
        self.create_profile('vgpu', [{'resources:VGPU': '1'}])
        server = self._create_server(
            flavor_id=self.create_accel_flavor(
                'vgpu', extra_spec=VGPU_FLAVOR), networks='none')
        devices_before = self.guest_devices(server)
        self.assertEqual(2, len(set(devices_before)))
        self._reboot_server(server, hard=True)
        self.assertEqual(sorted(devices_before),
                         sorted(self.guest_devices(server)))
