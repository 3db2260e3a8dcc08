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

import itertools

import testtools

from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import pci_path
from nova_accel.model.links import link_discovery
from nova_accel.model.links import linked_devices

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
LINK = 'CUSTOM_NOVA_ACCEL_'

Partition = link_discovery.KnownPartition


def a_gpu(bus, linked=True, vendor_id='10de', type_='GPU', **keys):
    address = pci_address.PciAddress(0, bus, 0, 0)
    handle = attach_handle.AttachHandle(
        naming.derived_uuid(NODE_UUID, address.node_device), address
    )
    return hardware.Device(
        name=address.node_device,
        type=type_,
        vendor_id=vendor_id,
        product_id='2335',
        vendor='v',
        product='p',
        address=address,
        driver='nvidia_gpu',
        deployables=(
            hardware.Deployable(
                'function',
                naming.RESOURCE_CLASSES[type_],
                frozenset({'CUSTOM_H200'}),
                (handle,),
            ),
        ),
        pooled=True,
        pooled_by_links=linked,
        **keys,
    )


def facts(devices, numbers=(), partitions=None, fault=None, **keys):
    return linked_devices.LinkFacts(
        **{
            'paths': {},
            'lines': {},
            'module_ids': {
                device.name: number
                for device, number in zip(devices, numbers, strict=False)
            },
            'fabric': (
                None
                if partitions is None
                else linked_devices.Fabric(tuple(partitions), fault)
            ),
            **keys,
        }
    )


def board(*sets):
    return [Partition(frozenset(each)) for each in sets]


def links(device):
    """The links that the device's pool promises."""
    [deployable] = device.deployables
    return {
        trait.removeprefix(LINK)
        for trait in deployable.traits
        if trait.startswith(LINK)
    }


class TestJoined(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.gpus = [a_gpu(bus) for bus in (1, 2, 3, 4)]

    def joined(self, devices=None, *args, **keys):
        return linked_devices.joined(
            devices or self.gpus, facts(devices or self.gpus, *args, **keys)
        )

    def faults(self, *args, **keys):
        return [
            device.fault for device in self.joined(None, *args, **keys).devices
        ]

    def test_partitions(self):
        joined = self.joined(
            None, (1, 2, 3, 4), board({1, 2}, {3, 4}, {1}, {2}, {3}, {4})
        )
        for device, number in zip(joined.devices, (1, 2, 3, 4), strict=True):
            self.assertEqual({'FABRIC', 'NVLINK_2'}, links(device))
            self.assertIn('CUSTOM_H200', device.deployables[0].traits)
            self.assertIsNone(device.fault)
            self.assertEqual(number, device.module_id)
            self.assertEqual(str(number), device.attributes['module_id'])
        self.assertEqual(
            'modules_1_2', joined.devices[0].attributes['link_sets']
        )
        [told] = joined.devices[0].link_sets
        self.assertEqual('modules_1_2', told.split()[0])
        self.assertEqual(2, len(joined.tree.nodes))

    def test_nvlink_of_a_board_is_only_what_partitions_give(self):
        pairs = frozenset(
            frozenset(each)
            for each in itertools.combinations(
                (device.name for device in self.gpus), 2
            )
        )
        joined = self.joined(
            None, (1, 2, 3, 4), board({1}, {2}, {3}, {4}), pairs=pairs
        )
        self.assertEqual((), joined.tree.nodes)
        self.assertEqual({'FABRIC'}, links(joined.devices[0]))
        joined = self.joined(None, (None,) * 4, (), pairs=pairs)
        self.assertEqual(
            {'NVLINK_2', 'NVLINK_3', 'NVLINK_4'}, links(joined.devices[0])
        )

    def test_gpus_that_are_not_pooled_by_links(self):
        """They need their partition all the same."""
        devices = [a_gpu(bus, linked=False) for bus in (1, 2)]
        joined = self.joined(devices, (1, 2), board({1, 2}, {1}, {2}))
        self.assertEqual((), joined.tree.nodes)
        self.assertEqual({'FABRIC'}, links(joined.devices[0]))

    def test_other_devices_need_no_fabric(self):
        devices = [
            a_gpu(1, vendor_id='1002'),
            a_gpu(2, type_='NIC'),
            a_gpu(3),
        ]
        joined = linked_devices.joined(
            devices,
            facts(devices[2:], (None,), board({1})),
        )
        for device in joined.devices:
            self.assertEqual(set(), links(device))
            self.assertIsNone(device.fault)

    def test_no_module_id(self):
        first, *others = self.faults((1,), board({1}, {2}))
        self.assertIsNone(first)
        for fault in others:
            self.assertIn('its module id', fault)
            self.assertIn('"module_ids" of [nova_accel] device_spec', fault)
        numbers = range(1, len(others) + 2)
        named = self.faults(numbers, board(*({each} for each in numbers)))
        self.assertEqual({None}, set(named))

    def test_the_same_module_id(self):
        faults = self.faults((1, 1, 2, 3), board({1}, {2}, {3}))
        self.assertIn('is also that of pci_0000_02_00_0', faults[0])
        self.assertEqual([None, None], faults[2:])
        correct = self.faults((1, 4, 2, 3), board({1}, {2}, {3}, {4}))
        self.assertEqual({None}, set(correct))

    def test_modules_without_a_partition(self):
        faults = self.faults(
            (1, 2, 3, 4),
            [
                *board({1}, {2}),
                Partition(frozenset({3}), is_supported=False),
            ],
        )
        self.assertEqual([None, None], faults[:2])
        self.assertIn(
            'supports none of the partitions with module 3', faults[2]
        )
        self.assertIn('has no partition with module 4', faults[3])

    def test_no_answer(self):
        self.assertEqual(
            ['it is away'] * 4,
            self.faults((1, 2, 3, 4), board({1}), fault='it is away'),
        )

    def test_an_own_fault_comes_first(self):
        device = a_gpu(1, fault='hot')
        joined = self.joined([device], (), board({1}))
        self.assertEqual('hot', joined.devices[0].fault)

    def test_the_operators_sets(self):
        line = device_spec.parse(
            [
                '{"vendor_id": "10de", "driver": "pci", "pool": "link", '
                '"links": {"pcie": [["0000:01:00.0", "0000:03:00.0", '
                '"0000:99:00.0"]]}}'
            ],
            ['pci'],
        )[0]
        path = pci_path.PciPath(
            'pci0000:00',
            tuple(pci_address.PciAddress(0, 0, slot, 0) for slot in (1, 2, 3)),
        )
        names = [device.name for device in self.gpus]
        joined = self.joined(
            None,
            paths=dict.fromkeys(names, path),
            lines=dict.fromkeys(names, line),
        )
        self.assertEqual(
            [{'PCIE_2'}, set(), {'PCIE_2'}, set()],
            list(map(links, joined.devices)),
        )

    def test_the_operators_pairs_of_dies(self):
        """No path tells which dies of an Ascend 910C are a pair."""
        dies = [
            a_gpu(bus, vendor_id='19e5', type_='AICHIP')
            for bus in (0x99, 0x9B, 0x9D, 0x9F)
        ]
        line = device_spec.parse(
            [
                '{"vendor_id": "19e5", "driver": "ascend", "pool": "link", '
                '"links": {"pcie": [["0000:9d:00.0", "0000:9f:00.0"], '
                '["0000:99:00.0", "0000:9b:00.0"]]}}'
            ],
            ['ascend'],
        )[0]
        joined = self.joined(
            dies, lines={device.name: line for device in dies}
        )
        self.assertEqual([{'PCIE_2'}] * 4, list(map(links, joined.devices)))
        first, second, third, fourth = (
            device.link_sets for device in joined.devices
        )
        self.assertEqual((first, third), (second, fourth))
        self.assertNotEqual(first, third)

    def test_a_link_that_is_down(self):
        """Each pool promises what its GPUs are still joined for."""
        names = [device.name for device in self.gpus]
        pairs = frozenset(map(frozenset, itertools.combinations(names, 2)))
        joined = self.joined(
            None, pairs=pairs, down=frozenset({frozenset(names[:2])})
        )
        self.assertEqual([{'NVLINK_2'}] * 4, list(map(links, joined.devices)))
        self.assertEqual(
            [set(names), {names[0], names[2]}, {names[1], names[3]}],
            [set(node.members) for node in joined.tree.nodes],
        )
        bridge = frozenset({frozenset(names[:2])})
        joined = self.joined(None, pairs=bridge, down=bridge)
        self.assertEqual([set()] * 4, list(map(links, joined.devices)))

    def test_a_link_of_an_operators_set_is_down(self):
        line = device_spec.parse(
            [
                '{"vendor_id": "10de", "driver": "pci", "pool": "link", '
                '"links": {"nvlink": [["0000:01:00.0", "0000:02:00.0"], '
                '["0000:03:00.0", "0000:04:00.0"]]}}'
            ],
            ['pci'],
        )[0]
        names = [device.name for device in self.gpus]
        joined = self.joined(
            None,
            lines=dict.fromkeys(names, line),
            down=frozenset({frozenset(names[:2])}),
        )
        self.assertEqual(
            [set(), set(), {'NVLINK_2'}, {'NVLINK_2'}],
            list(map(links, joined.devices)),
        )

    def test_sets_that_cross(self):
        devices = [a_gpu(1, numa_node=0), a_gpu(2, numa_node=1)]
        devices.append(a_gpu(3, numa_node=1))
        joined = self.joined(
            devices,
            pairs=frozenset({frozenset(each.name for each in devices[:2])}),
        )
        [told] = joined.left_out
        self.assertIn('numa set numa_1', told)
