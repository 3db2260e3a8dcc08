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

"""Servers with joined devices, from Nova's API to their guests."""

from functional import test_link_sets
from nova_accel.testing import hgx_host

HOST = test_link_sets.HOST


def joined(link, **resources):
    """A group for each resource class."""
    return [
        {f'resources:{name}': f'{amount}', 'accel:link': link}
        for name, amount in resources.items()
    ]


class TestJoined(test_link_sets.LinkSetsTestCase):
    def setUp(self):
        super().setUp()
        self.start(pool='link')

    def boot_joined(self, name, *groups, **kwargs):
        self.create_profile(name, list(groups))
        return self.boot(self.create_accel_flavor(name), **kwargs)

    def boot_gpus(self, amount, **kwargs):
        return self.boot_joined(
            f'gpus{amount}', *joined('nvlink', PGPU=amount), **kwargs
        )

    def modules(self, server):
        return frozenset(
            self.hgx.module_ids[address]
            for address in map(
                hgx_host.pci_address.PciAddress.parse,
                self.guest_devices(server),
            )
            if address in self.hgx.module_ids
        )

    def assert_has_partition(self, server, size):
        """An active one, of which the server has all GPUs."""
        modules = self.modules(server)
        self.assertEqual(size, len(modules))
        self.assertIn(modules, map(frozenset, self.manager.active.values()))
        self.assert_guest_has_its_arqs(server, *[(0, 'PCI')] * size)

    def test_one_flavor_for_each_size(self):
        servers = []
        for size in (2, 4):
            server = self.boot_gpus(size)
            self.assert_has_partition(server, size)
            servers.append(server)
        refused = self.boot_gpus(8, expected_state='ERROR')
        self.assertIn(
            'device profile gpus8: device_profile_0 (PGPU=8 joined by '
            'NVLink): the only set that joins 8',
            refused['fault']['message'],
        )
        self.delete(refused, *servers)

    def test_a_whole_board(self):
        server = self.boot_gpus(8)
        self.assert_has_partition(server, 8)
        # What is made from the allocations alone stays as it is.
        self.api.post_server_action(server['id'], {'reboot': {'type': 'HARD'}})
        self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        self.assert_has_partition(server, 8)
        self.delete(server)

    def test_a_resize(self):
        self.flags(allow_resize_to_same_host=True)
        server = self.boot_gpus(2)
        self.create_profile('gpus4', joined('nvlink', PGPU=4))
        server = self._resize_server(server, self.create_accel_flavor('gpus4'))
        # The one option that all of Nova's services here share.
        self.flags(host=HOST)
        server = self._confirm_resize(server)
        self.assert_has_partition(server, 4)
        self.delete(server)

    def test_gpu_and_network_card_of_one_switch(self):
        servers = []
        switches = set()
        for number in range(4):
            server = self.boot_joined(
                f'pair{number}', *joined('pcie', PGPU=1, CUSTOM_NIC=1)
            )
            [switch] = {
                self.hgx.place(address).bridges[1]
                for address in map(
                    hgx_host.pci_address.PciAddress.parse,
                    self.guest_devices(server),
                )
            }
            switches.add(switch)
            servers.append(server)
        self.assertEqual(4, len(switches))
        self.delete(*servers)

    def test_several_gpus_that_are_not_joined(self):
        refused = self.boot_joined(
            'two', {'resources:PGPU': '2'}, expected_state='ERROR'
        )
        self.assertIn('accel:link=nvlink', refused['fault']['message'])
        self.delete(refused)

    def test_it_is_explained(self):
        server = self.boot_gpus(2)
        for size, hosts in ((4, [HOST]), (8, [])):
            self.create_profile(
                f'explained{size}', joined('nvlink', PGPU=size)
            )
            [profile] = [
                each
                for each in self.accelerator.get('/device_profiles')[
                    'device_profiles'
                ]
                if each['name'] == f'explained{size}'
            ]
            [group] = self.accelerator.get(
                f'/device_profiles/{profile["uuid"]}/explain'
            )['explain']['groups']
            self.assertEqual(hosts, group['hostnames'])
        self.delete(server)
