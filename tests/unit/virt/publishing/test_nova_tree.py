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

import copy
import dataclasses

from nova.compute import provider_tree
import testtools

from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.providers import occupancy
from nova_accel.model.providers import provider_layout
from nova_accel.virt.publishing import nova_tree
from rig import sample_devices

NODE = 'c1'
NODE_UUID = '9d9b9a0a-3d33-4a2b-8f0b-8c7a4e0f0001'
FOREIGN = '9d9b9a0a-3d33-4a2b-8f0b-8c7a4e0f0002'


def a_device(bus, *deployables):
    return sample_devices.fpga(
        bus,
        [
            hardware.Deployable(
                name,
                'FPGA',
                frozenset({f'CUSTOM_{name}'}),
                (
                    attach_handle.AttachHandle(
                        naming.derived_uuid(NODE_UUID, str(bus), name),
                        pci_address.PciAddress(0, bus, 0, number),
                    ),
                ),
            )
            for number, name in enumerate(deployables, 1)
        ],
    )


class TestApply(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.given = {}
        self.tree = provider_tree.ProviderTree()
        self.tree.new_root(NODE, NODE_UUID)
        self.tree.new_child(f'{NODE}_pci_0000_81_00_0', NODE, FOREIGN)
        self.tree.update_inventory(FOREIGN, {'VGPU': {'total': 16}})
        self.tree.add_traits(FOREIGN, 'OWNER_NOVA')

    def apply(self, *devices, unusable=(), unused=frozenset()):
        layout = provider_layout.layout(NODE, NODE_UUID, devices)
        changes = provider_layout.diff(
            layout,
            occupancy.inventories(layout, set(unusable), {}, {}),
            nova_tree.present(self.tree, self.given),
            unused,
            self.given,
        )
        nova_tree.apply(self.tree, NODE, changes)
        self.given = provider_layout.now_given(layout, changes, self.given)
        return changes

    def data(self, *parts):
        return self.tree.data(naming.provider_name(NODE, *parts))

    def test_devices_appear_below_the_node(self):
        self.assertTrue(self.apply(a_device(1, 'A', 'B'), a_device(2, 'C')))
        parent = self.data('pci_0000_01_00_0')
        self.assertEqual(NODE_UUID, parent.parent_uuid)
        self.assertEqual({}, parent.inventory)
        region = self.data('pci_0000_01_00_0', 'A')
        self.assertEqual(parent.uuid, region.parent_uuid)
        self.assertEqual(
            {
                'FPGA': {
                    'total': 1,
                    'reserved': 0,
                    'min_unit': 1,
                    'max_unit': 1,
                    'step_size': 1,
                    'allocation_ratio': 1.0,
                }
            },
            region.inventory,
        )
        self.assertEqual(
            {'CUSTOM_A', 'CUSTOM_NOVA_ACCEL', 'OWNER_CYBORG'}, region.traits
        )
        self.assertEqual(NODE_UUID, self.data('pci_0000_02_00_0').parent_uuid)

    def test_a_second_time_nothing_changes(self):
        self.apply(a_device(1, 'A', 'B'))
        before = copy.deepcopy(self.tree)
        self.assertFalse(self.apply(a_device(1, 'A', 'B')))
        for uuid in before.get_provider_uuids():
            self.assertEqual(before.data(uuid), self.tree.data(uuid))

    def test_traits_that_an_operator_added_stay(self):
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        self.tree.add_traits(uuid, 'CUSTOM_RACK_7')
        self.assertFalse(self.apply(a_device(1, 'A')))
        self.assertIn('CUSTOM_RACK_7', self.tree.data(uuid).traits)

    def test_a_trait_that_a_device_has_no_more_goes(self):
        old, new = (
            dataclasses.replace(
                a_device(1, 'A'),
                deployables=(
                    dataclasses.replace(
                        a_device(1, 'A').deployables[0],
                        traits=frozenset({'CUSTOM_A', trait}),
                    ),
                ),
            )
            for trait in ('CUSTOM_NVIDIA_11', 'CUSTOM_NVIDIA_12')
        )
        self.apply(old)
        uuid = self.data('pci_0000_01_00_0').uuid
        self.tree.add_traits(uuid, 'CUSTOM_RACK_7')
        self.assertTrue(self.apply(new))
        self.assertEqual(
            {
                'CUSTOM_A',
                'CUSTOM_NVIDIA_12',
                'CUSTOM_RACK_7',
                'CUSTOM_NOVA_ACCEL',
                'OWNER_CYBORG',
            },
            self.tree.data(uuid).traits,
        )
        self.assertFalse(self.apply(new))

    def test_it_goes_again_if_placement_did_not_hear_of_it(self):
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        self.given = {uuid: self.given[uuid] | {'CUSTOM_OLD'}}
        for _try in range(2):
            self.tree.add_traits(uuid, 'CUSTOM_OLD')
            self.assertTrue(self.apply(a_device(1, 'A')))
            self.assertNotIn('CUSTOM_OLD', self.tree.data(uuid).traits)
        self.apply(a_device(1, 'A'))
        self.tree.add_traits(uuid, 'CUSTOM_OLD')
        self.assertFalse(self.apply(a_device(1, 'A')))

    def test_providers_of_others_are_never_touched(self):
        before = self.tree.data(FOREIGN)
        self.apply(a_device(1, 'A'))
        self.apply()
        self.assertEqual(before, self.tree.data(FOREIGN))

    def test_our_trait_makes_no_provider_ours(self):
        """An operator can give it to any, with a provider.yaml."""
        for uuid in NODE_UUID, FOREIGN:
            self.tree.add_traits(uuid, naming.OWNERSHIP_TRAIT)
        before = self.tree.data(FOREIGN)
        self.apply(a_device(1, 'A'))
        self.apply()
        self.assertEqual(before, self.tree.data(FOREIGN))
        self.assertTrue(self.tree.exists(NODE_UUID))

    def test_a_lost_device_is_reserved_then_removed(self):
        self.apply(a_device(1, 'A', 'B'))
        lost, gone = (
            self.data('pci_0000_01_00_0', name).uuid for name in ('A', 'B')
        )
        self.apply()
        self.assertEqual(1, self.tree.data(lost).inventory['FPGA']['reserved'])
        self.apply(unused=frozenset({gone}))
        self.assertEqual(1, self.tree.data(lost).inventory['FPGA']['reserved'])
        self.assertRaises(ValueError, self.data, 'pci_0000_01_00_0', 'B')
        self.apply(unused=frozenset({lost}))
        self.assertEqual([], nova_tree.ours(self.tree))

    def test_a_device_that_comes_back_is_offered_again(self):
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        for devices, reserved in (((), 1), ((a_device(1, 'A'),), 0)):
            self.apply(*devices)
            self.assertEqual(
                reserved, self.tree.data(uuid).inventory['FPGA']['reserved']
            )

    def test_a_unit_that_nobody_can_get_is_reserved(self):
        self.apply(a_device(1, 'A', 'B'))
        handle = a_device(1, 'A', 'B').deployables[0].handles[0].uuid
        for unusable, reserved in (([handle], 1), ([], 0)):
            self.assertTrue(
                self.apply(a_device(1, 'A', 'B'), unusable=unusable)
            )
            self.assertEqual(
                [reserved, 0],
                [
                    self.data('pci_0000_01_00_0', name).inventory['FPGA'][
                        'reserved'
                    ]
                    for name in ('A', 'B')
                ],
            )

    def test_what_was_made_without_traits_is_ours(self):
        """A reshape was refused after its providers had been made."""
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        self.tree.update_traits(uuid, [])
        self.tree.update_inventory(uuid, {})
        self.apply()
        self.assertFalse(self.tree.exists(uuid))
        self.assertTrue(self.tree.exists(FOREIGN))

    def test_allocations_of_ours_only(self):
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        allocations = {
            NODE_UUID: {'resources': {'VCPU': 1}},
            FOREIGN: {'resources': {'VGPU': 1}},
            uuid: {'resources': {'FPGA': 1}},
            'another-hosts': {'resources': {'FPGA': 1}},
        }
        self.assertEqual(
            (
                provider_allocation.ProviderAllocation(
                    uuid,
                    {'FPGA': 1},
                    frozenset(
                        {'CUSTOM_A', 'CUSTOM_NOVA_ACCEL', 'OWNER_CYBORG'}
                    ),
                ),
            ),
            nova_tree.allocated(self.tree, allocations),
        )

    def test_the_share_of_a_card_is_no_unit(self):
        self.apply(a_device(1, 'A'))
        uuid = self.data('pci_0000_01_00_0').uuid
        allocations = {
            uuid: {'resources': {'FPGA': 1, naming.CARD_SHARE: 7}},
        }
        (found,) = nova_tree.allocated(self.tree, allocations)
        self.assertEqual({'FPGA': 1}, found.resources)
