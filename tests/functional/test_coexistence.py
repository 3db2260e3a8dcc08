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

import json

from nova.conf import CONF
from nova.conf import devices as nova_devices_conf
from nova.tests.fixtures import libvirt as fakelibvirt
import os_resource_classes as orc

from functional import base
from nova_accel.testing import devices

NATIVE = {'resources:VGPU': '1'}
OURS = json.dumps(
    {
        'address': '0000:82:00.0',
        'driver': 'mdev',
        'mdev_type': fakelibvirt.NVIDIA_12_VGPU_TYPE,
    }
)


class TestNovasOwnVgpus(base.AcceleratorTestCase):
    """Nova's vGPUs and ours in one host never mix."""

    hosts = ()
    device_spec = (OURS,)

    def setUp(self):
        super().setUp()
        self.flags(
            enabled_mdev_types=[fakelibvirt.NVIDIA_11_VGPU_TYPE],
            group='devices',
        )
        nova_devices_conf.register_dynamic_opts(CONF)
        self.flags(
            device_addresses=['0000:81:00.0'],
            group=f'mdev_{fakelibvirt.NVIDIA_11_VGPU_TYPE}',
        )
        self.start_accelerated_compute(
            'host1',
            devices.pci_info(gpus=2, fpgas=0, qats=0),
            self.device_spec,
        )
        self.ours = {
            provider['uuid']
            for provider in self.accelerator_providers('host1')
        }

    def mdevs(self, hostname):
        """Nova keeps those that it made for its next server; we do not."""
        return {
            uuid: (parent, mdev_type)
            for uuid, (parent, mdev_type) in super().mdevs(hostname).items()
            if mdev_type != fakelibvirt.NVIDIA_11_VGPU_TYPE
        }

    def vgpu_providers(self, server):
        """The providers that the server has a vGPU of."""
        allocations = self._get_allocations_by_server_uuid(server['id'])
        return {
            uuid
            for uuid, allocation in allocations.items()
            if orc.VGPU in allocation['resources']
        }

    def assert_native(self, server):
        (provider,) = self.vgpu_providers(server)
        self.assertNotIn(provider, self.ours)
        (uuid,) = self.guest_devices(server)
        self.assertEqual(
            fakelibvirt.NVIDIA_11_VGPU_TYPE, super().mdevs('host1')[uuid][1]
        )

    def test_a_native_vgpu_comes_from_novas_provider(self):
        self.assertEqual(1, len(self.ours))
        for extra_spec in (NATIVE, {'resources1:VGPU': '1'}):
            server = self.boot(self._create_flavor(extra_spec=extra_spec))
            self.assert_native(server)

    def test_a_native_vgpu_never_takes_ours(self):
        """Not even when Nova has none left."""
        servers = [
            self.boot(self._create_flavor(extra_spec={'resources:VGPU': '16'}))
        ]
        failed = self.boot(
            self._create_flavor(extra_spec=NATIVE), expected_state='ERROR'
        )
        self.assertIn('No valid host', failed['fault']['message'])
        self.assertEqual(16, len(self.guest_devices(servers[0])))

    def test_ours_comes_from_our_provider(self):
        server = self.boot_with({'resources:VGPU': '1'})
        self.assertEqual(self.ours, self.vgpu_providers(server))
        (uuid,) = self.guest_devices(server)
        self.assertEqual(
            fakelibvirt.NVIDIA_12_VGPU_TYPE, self.mdevs('host1')[uuid][1]
        )
        self.delete(server)

    def test_both_in_one_flavor(self):
        server = self.boot_with({'resources:VGPU': '1'}, extra_spec=NATIVE)
        before = self.guest_devices(server)
        self.assertEqual(2, len(before))
        self.assertEqual(2, len(self.vgpu_providers(server)))
        self._reboot_server(server, hard=True)
        self.assertEqual(before, self.guest_devices(server))

    def test_novas_inventory_is_as_without_ours(self):
        self.boot_with({'resources:VGPU': '3'})
        self._run_periodics()
        native = {
            self._get_resource_provider_by_uuid(uuid)[
                'name'
            ]: self._get_provider_inventory(uuid)[orc.VGPU]['total']
            for uuid in self._get_all_rp_uuids_in_a_tree(
                self.compute_rp_uuids['host1']
            )
            if uuid not in self.ours
            and orc.VGPU in self._get_provider_inventory(uuid)
        }
        self.assertEqual({'host1_pci_0000_81_00_0': 16}, native)


class TestNotYetPublished(TestNovasOwnVgpus):
    """As at the first start after an upgrade: no trait of ours exists."""

    device_spec = ()

    def test_a_native_vgpu_comes_from_novas_provider(self):
        self.assertEqual(set(), self.ours)
        self.assertNotIn('CUSTOM_NOVA_ACCEL', self._get_all_traits())
        self.assert_native(self.boot(self._create_flavor(extra_spec=NATIVE)))

    test_ours_comes_from_our_provider = None
    test_both_in_one_flavor = None
    test_novas_inventory_is_as_without_ours = None


class TestNovasPciTracking(base.AcceleratorTestCase):
    """A QAT function of Nova's and seven of ours."""

    hosts = ()

    def test_each_hands_out_its_own(self):
        alias = {'vendor_id': '8086', 'product_id': '37c9', 'name': 'qat'}
        self.flags(
            group='pci',
            device_spec=[
                json.dumps(
                    {
                        'vendor_id': '8086',
                        'product_id': '37c9',
                        'address': '*:81:00.1',
                    }
                )
            ],
            alias=[json.dumps(alias)],
        )
        self.start_accelerated_compute(
            'host1', devices.pci_info(gpus=0, fpgas=0)
        )
        (provider,) = self.accelerator_providers('host1')
        self.assertEqual({'CUSTOM_QAT': 7}, provider['inventory'])
        native = self.boot(
            self._create_flavor(extra_spec={'pci_passthrough:alias': 'qat:1'})
        )
        self.assertEqual(['0000:81:00.1'], self.guest_devices(native))
        server = self.boot_with({'resources:CUSTOM_QAT': '7'})
        self.assertNotIn('0000:81:00.1', self.guest_devices(server))
        self.assertEqual(7, len(self.guest_devices(server)))
        self._delete_server(native)
        self.delete(server)
