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
from functional import operations

#: One that Nova's simulated Glance has.
_OTHER_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'


class TestBoot(base.AcceleratorTestCase):
    """From the flavor's extra spec to the guest's XML and back."""

    @operations.shows('boot', devices=['PCI'])
    def test_pci(self):
        server = self.boot_with(base.QAT)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        (hostdev,) = self.hostdevs(server)
        self.assertEqual(
            ('pci', 'yes'), (hostdev.get('type'), hostdev.get('managed'))
        )
        self.delete(server)

    @operations.shows('boot', devices=['mdev'])
    def test_mdev(self):
        server = self.boot_with(base.VGPU)
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'))
        (arq,) = self.arqs(server)
        self.assertEqual(
            [arq['attach_handle_uuid']], list(self.mdevs('host1'))
        )
        self.delete(server)

    def test_two_groups(self):
        server = self.boot_with(base.FPGA, base.VGPU)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'), (1, 'MDEV'))
        self.delete(server)

    def test_two_units_of_one_group(self):
        server = self.boot_with(
            {'resources:CUSTOM_QAT': '2'}, {'resources:VGPU': '2'}
        )
        self.assert_guest_has_its_arqs(
            server, (0, 'PCI'), (0, 'PCI'), (1, 'MDEV'), (1, 'MDEV')
        )
        self.delete(server)

    def test_two_groups_of_one_class_told_apart_by_traits(self):
        first, second = (
            provider
            for provider in self.accelerator_providers('host1')
            if 'FPGA' in provider['inventory']
        )
        trait0, trait1 = (
            next(iter(set(provider['traits']) - set(other['traits'])))
            for provider, other in ((first, second), (second, first))
        )
        server = self.boot_with(
            {**base.FPGA, f'trait:{trait1}': 'required'},
            {**base.FPGA, f'trait:{trait0}': 'required'},
        )
        self.assertEqual(
            {0: second['uuid'], 1: first['uuid']},
            {
                arq['device_profile_group_id']: arq['device_rp_uuid']
                for arq in self.arqs(server)
            },
        )
        self.delete(server)

    def test_a_forbidden_trait_is_kept(self):
        first, second = (
            provider
            for provider in self.accelerator_providers('host1')
            if 'FPGA' in provider['inventory']
        )
        trait = next(iter(set(first['traits']) - set(second['traits'])))
        server = self.boot_with({**base.FPGA, f'trait:{trait}': 'forbidden'})
        (arq,) = self.arqs(server)
        self.assertEqual(second['uuid'], arq['device_rp_uuid'])
        self.delete(server)

    def test_the_flavors_group_policy_rules_the_groups(self):
        """All units of the host's one pool have the same provider."""
        server = self.boot_with(base.QAT, base.QAT)
        self.assertEqual(
            1, len({arq['device_rp_uuid'] for arq in self.arqs(server)})
        )
        self.delete(server)
        refused = self.boot(
            self.create_accel_flavor(
                'profile', extra_spec={'group_policy': 'isolate'}
            ),
            expected_state='ERROR',
        )
        self.assertIn(
            'no host has device_profile_0, device_profile_1 free together',
            refused['fault']['message'],
        )
        self.delete(refused)

    def test_a_plain_server_gets_nothing(self):
        server = self.boot(self._create_flavor())
        self.assertEqual([], self.hostdevs(server))
        self.assert_nothing_left()

    def test_an_edited_profile_does_not_touch_running_servers(self):
        server = self.boot_with(base.QAT)
        before = self.guest_devices(server)
        self.change_profile('profile', [base.VGPU])
        self._reboot_server(server, hard=True)
        self.assertEqual(before, self.guest_devices(server))
        server = self._rebuild_server(server, _OTHER_IMAGE)
        self.assertEqual(before, self.guest_devices(server))
        self.delete(server)
