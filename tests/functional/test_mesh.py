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

"""Servers on hosts whose GPUs NVLink joins without NVSwitches."""

import itertools

import fixtures

from functional import test_joined
from functional import test_link_sets
from nova_accel.model import pci_address

HOST = test_link_sets.HOST


class MeshTestCase(test_link_sets.LinkSetsTestCase):
    """Two boards of four GPUs. Each two of a board have links between them."""

    def setUp(self):
        super().setUp()
        self.flags(fabric_manager=None, group='nova_accel')
        # The GPUs are looked at each time.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.publishing.gpu_links.LOOK_AGAIN_S', 0
            )
        )
        self.gpus = self.hgx.gpus
        self.in_guests = frozenset()
        self.tell_links()

    def start_mesh(self):
        self.install()
        self.bind('nvidia', *self.gpus)
        self.start_host(pool='link', module_ids=None)

    def tell_links(self, *down):
        """Tell all links but these, each named by the numbers of its GPUs."""
        self.make_nvidia_smi(
            {
                gpu: [
                    other
                    for other_number, other in enumerate(self.gpus)
                    if other != gpu
                    and number // 4 == other_number // 4
                    and {number, other_number} not in map(set, down)
                    and other not in self.in_guests
                ]
                for number, gpu in enumerate(self.gpus)
                if gpu not in self.in_guests
            }
        )

    def change_links(self, *down):
        self.tell_links(*down)
        self.update(2)

    def numbers(self, addresses):
        """The numbers of GPUs, in the order of their addresses."""
        return {
            self.gpus.index(pci_address.PciAddress.parse(address))
            for address in addresses
        }


class TestWithSwitches(MeshTestCase):
    """Below each PCIe switch are two GPUs of a board."""

    def setUp(self):
        super().setUp()
        self.start_mesh()

    def promised(self):
        """The last part of a provider's path -> the NVLinks it promises."""
        return {
            path[-1]: {
                trait for trait in traits if not trait.startswith('NUMA')
            }
            for path, (_units, traits) in self.tree().items()
        }

    def test_what_needs_no_failed_link_stays(self):
        whole = self.promised()
        self.assertEqual({'NVLINK_2', 'NVLINK_3', 'NVLINK_4'}, whole['numa_0'])
        pair = 'root_0000_15_pgpu_10de_2335'
        self.assertEqual({'NVLINK_2', 'PCIE_2'}, whole[pair])
        of_switch = {'NVLINK_2', 'PCIE_2', 'PCIE_3'}
        # Of the two GPUs of a switch.
        self.change_links((0, 1))
        lost = {'numa_0': set(), pair: {'PCIE_2'}}
        self.assertEqual(
            whole | lost | {'root_0000_59': of_switch}, self.promised()
        )
        # Of GPUs of two switches, so all pairs are still joined.
        self.change_links((0, 2))
        wanted = whole | {
            'numa_0': set(),
            'root_0000_15': of_switch,
            'root_0000_59': of_switch,
        }
        self.assertEqual(wanted, self.promised())
        # It is known after a restart, too.
        self.restart(pool='link', module_ids=None)
        self.update(2)
        self.assertEqual(wanted, self.promised())
        self.change_links()
        self.assertEqual(whole, self.promised())


class TestWithoutSwitches(MeshTestCase):
    def install(self):
        """Each GPU is at a root complex of its own."""
        super().install()
        for number, gpu in enumerate(self.gpus):
            self.sysfs.remove(gpu)
            self.sysfs.place(gpu, f'pci{number:04x}:00')
            self.sysfs.set(
                gpu,
                vendor='0x10de',
                device='0x2335',
                numa_node=f'{number // 4}',
                **{'class': '0x030200'},
            )

    def pools(self):
        """The units and the links of each pool of GPUs."""
        return sorted(
            (
                units['PGPU'],
                sorted(trait for trait in traits if 'NVLINK' in trait),
            )
            for units, traits in self.tree().values()
            if units.get('PGPU')
        )

    def test_servers_get_joined_gpus(self):
        self.start_mesh()
        whole = [(4, ['NVLINK_2', 'NVLINK_3', 'NVLINK_4'])] * 2
        pair = 2, ['NVLINK_2']
        self.assertEqual(whole, self.pools())
        self.create_profile('two', test_joined.joined('nvlink', PGPU=2))
        self.create_profile('four', test_joined.joined('nvlink', PGPU=4))
        two = self.create_accel_flavor('two')
        four = self.create_accel_flavor('four')
        self.change_links((0, 3), (1, 2))
        self.assertEqual([pair, pair, whole[0]], self.pools())
        servers = [self.boot(four)]
        self.assertEqual(
            {4, 5, 6, 7}, self.numbers(self.guest_devices(servers[0]))
        )
        for _time in range(2):
            servers.append(self.boot(two))
            found = self.numbers(self.guest_devices(servers[-1]))
            self.assertIn(found, [{0, 1}, {2, 3}, {0, 2}, {1, 3}])
        self.delete(*servers)
        self.change_links()
        self.assertEqual(whole, self.pools())

    def test_a_link_fails_beside_a_guest(self):
        """The guest keeps its GPUs, and the next ones are joined."""
        self.start_mesh()
        self.create_profile('one', [{'resources:PGPU': '1'}])
        self.create_profile('two', test_joined.joined('nvlink', PGPU=2))
        one = self.boot(self.create_accel_flavor('one'))
        [mine] = before = self.guest_devices(one)
        [number] = self.numbers(before)
        board = [each for each in range(8) if each // 4 == number // 4]
        board.remove(number)
        self.in_guests = frozenset({pci_address.PciAddress.parse(mine)})
        self.bind('vfio-pci', *self.in_guests)
        # Its links are not told now, which is no fault.
        whole = self.tree()
        self.change_links()
        self.assertEqual(whole, self.tree())
        self.change_links(board[:2])
        self.restart(pool='link', module_ids=None)
        self.update(2)
        self.assertEqual(before, self.guest_devices(one))
        two = self.create_accel_flavor('two')
        servers = [self.boot(two) for _time in range(3)]
        found = [
            self.numbers(self.guest_devices(server)) for server in servers
        ]
        self.assertNotIn(set(board[:2]), found)
        for some in found:
            self.assertEqual(1, len({each // 4 for each in some}), found)
        self.assertEqual(
            6, len(set(itertools.chain.from_iterable(found))), found
        )
        self.delete(one, *servers)
