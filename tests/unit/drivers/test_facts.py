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

import testtools

from nova_accel import exceptions
from nova_accel.drivers import facts
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import subsystem
from nova_accel.model.providers import provider_layout

BITSTREAM = '6a8ee9d1-5d0f-4f5e-9f5b-2a4d1f0a7c33'


def a_function(vendor_id='8086', product_id='37c9', **more):
    address = pci_address.PciAddress(0, 0x3D, 1, 0)
    return pci_function.PciFunction(
        address.node_device, address, vendor_id, product_id, **more
    )


def a_spec(**keys):
    return device_spec.parse(
        [json.dumps({'vendor_id': '*', 'driver': 'pci', **keys})], ['pci']
    )[0]


def a_device(function, spec):
    known = facts.of(function, spec)
    device = known.device([known.deployable('function', ())])
    return device, device.deployables[0]


class TestFacts(testtools.TestCase):
    def test_known_device(self):
        device, deployable = a_device(
            a_function(vendor='Intel Corp.', product='QAT', numa_node=1),
            a_spec(),
        )
        self.assertEqual(
            ('QAT', 'Intel', 'C62x VF', 1, 'pci', 'pci_0000_3d_01_0'),
            (
                device.type,
                device.vendor,
                device.product,
                device.numa_node,
                device.driver,
                device.name,
            ),
        )
        self.assertEqual('CUSTOM_QAT', deployable.resource_class)
        self.assertEqual({'CUSTOM_QAT_INTEL_C62X_VF'}, deployable.traits)
        self.assertEqual(frozenset(), device.operator_traits)

    def test_boards_with_the_same_ids_share_neither_trait_nor_pool(self):
        found = [
            a_device(
                a_function(
                    '10de',
                    '25b6',
                    subsystem=subsystem.Subsystem('10de', board),
                ),
                a_spec(pool=True, traits=['CUSTOM_RACK_7']),
            )
            for board in ('157e', '14a9', '0000')
        ]
        self.assertEqual(
            [
                {'CUSTOM_GPU_NVIDIA_A2', 'CUSTOM_RACK_7'},
                {'CUSTOM_GPU_NVIDIA_A16', 'CUSTOM_RACK_7'},
                {'CUSTOM_GPU_NVIDIA_A2_OR_A16', 'CUSTOM_RACK_7'},
            ],
            [deployable.traits for _device, deployable in found],
        )
        pools = [provider_layout.pool(*each) for each in found]
        self.assertEqual(3, len(set(pools)))
        _device, plain = a_device(
            a_function('10de', '25b6'), a_spec(pool=True)
        )
        self.assertEqual(
            ('pgpu', '10de', '25b6'), provider_layout.pool(_device, plain)
        )

    def test_operators_line_overrules(self):
        device, deployable = a_device(
            a_function('8086', '0001', class_code='120000'),
            a_spec(
                type='FPGA',
                resource_class='CUSTOM_RC',
                pool=True,
                traits=['CUSTOM_RACK_7'],
            ),
        )
        self.assertEqual(('FPGA', True), (device.type, device.pooled))
        self.assertEqual('CUSTOM_RC', deployable.resource_class)
        self.assertEqual(
            {'CUSTOM_FPGA_INTEL_0001', 'CUSTOM_RACK_7'}, deployable.traits
        )
        self.assertEqual({'CUSTOM_RACK_7'}, device.operator_traits)

    def test_unknown_device_has_its_ids_in_the_trait(self):
        """The host's own names differ from host to host."""
        device, deployable = a_device(
            a_function('beef', '0001', vendor='Beef Inc.', product='X [1]'),
            a_spec(type='GPU'),
        )
        self.assertEqual(
            ('Beef Inc.', 'X [1]'), (device.vendor, device.product)
        )
        self.assertEqual({'CUSTOM_GPU_BEEF_0001'}, deployable.traits)

    def test_nameless_device(self):
        device, _deployable = a_device(
            a_function('8086', '0001'), a_spec(type='GPU')
        )
        self.assertEqual(('Intel', '0001'), (device.vendor, device.product))

    def test_unknown_type(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            facts.of,
            a_function('beef', '0001'),
            a_spec(),
        )
        self.assertIn('beef:0001', str(error))
        self.assertIn('"type"', str(error))

    def test_attributes_are_those_that_stay(self):
        device, _deployable = a_device(
            a_function(
                class_code='0b4000',
                iommu_group=12,
                max_virtual_functions=16,
                link_max=pci_function.Link(16, 8),
                link=pci_function.Link(2.5, 8),
                driver='vfio-pci',
                upstream=pci_address.PciAddress(0, 0x3C, 0, 0),
                vpd={'part_number': 'X'},
            ),
            a_spec(),
        )
        self.assertEqual(
            {
                'pci_class': '0b4000',
                'iommu_group': '12',
                'link': '16 GT/s x8',
                'max_virtual_functions': '16',
                'upstream': '0000:3c:00.0',
                'part_number': 'X',
            },
            device.attributes,
        )

    def test_attributes_that_nobody_knows(self):
        device, _deployable = a_device(a_function(), a_spec())
        self.assertEqual({}, device.attributes)

    def test_further_traits(self):
        known = facts.of(a_function(), a_spec())
        self.assertEqual(
            {'CUSTOM_QAT_INTEL_C62X_VF', 'CUSTOM_A', 'CUSTOM_B'},
            known.deployable('one', (), 'CUSTOM_A', 'CUSTOM_B').traits,
        )

    def test_cleaning(self):
        handle = attach_handle.AttachHandle(
            'uuid', pci_address.PciAddress(0, 0x3D, 1, 0)
        )
        for keys, how in (
            ({}, ()),
            ({'clean': 'none'}, ()),
            ({'clean': 'reset'}, ('reset',)),
            (
                {'clean': 'command', 'clean_command': ['/bin/wipe', '-v']},
                ('command', '/bin/wipe', '-v'),
            ),
            (
                {'clean': 'program', 'clean_bitstream': BITSTREAM},
                ('program', BITSTREAM),
            ),
        ):
            deployable = facts.of(a_function(), a_spec(**keys)).deployable(
                'one', [handle]
            )
            self.assertIs(bool(how), deployable.is_cleaned)
            self.assertEqual(how, deployable.handles[0].cleaning)

    def test_the_drivers_type_is_the_last_to_be_asked(self):
        unknown = a_function('beef', '0001')
        self.assertEqual('SSD', facts.of(unknown, a_spec(), 'SSD').type)
        self.assertEqual(
            'TIME', facts.of(unknown, a_spec(type='TIME'), 'SSD').type
        )
        self.assertEqual('QAT', facts.of(a_function(), a_spec(), 'SSD').type)

    def test_a_card_in_parts(self):
        gpu = facts.of(a_function('10de', '20b5'), a_spec())
        self.assertEqual('VGPU', facts.virtual(gpu).type)
        qat = facts.of(a_function(), a_spec())
        self.assertEqual('QAT', facts.virtual(qat).type)

    def test_a_type_that_the_catalogue_contradicts(self):
        for ids, line, known in (
            (('8086', '37c9'), 'GPU', 'QAT'),
            (('15b3', '1021'), 'GPU', 'NIC'),
            (('10de', '20b5'), 'AICHIP', 'GPU'),
            (('144d', 'a824'), 'FPGA', 'SSD'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError,
                facts.of,
                a_function(*ids),
                a_spec(type=line),
            )
            for text in (line, known, ':'.join(ids), 'catalogue_file'):
                self.assertIn(text, str(error))

    def test_a_gpu_in_parts_is_no_contradiction(self):
        for type_ in ('GPU', 'VGPU'):
            self.assertEqual(
                type_,
                facts.of(a_function('10de', '20b5'), a_spec(type=type_)).type,
            )

    def test_a_type_that_the_class_contradicts(self):
        for ids, class_code, type_ in (
            (('10de', '22a3'), '068000', 'GPU'),
            (('8086', '2021'), '088000', 'SSD'),
            (('8086', '2021'), '088000', 'NIC'),
            (('8086', '2034'), '110100', 'QAT'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError,
                facts.of,
                a_function(*ids, class_code=class_code),
                a_spec(type=type_),
            )
            self.assertIn(class_code, str(error))
            self.assertIn(type_, str(error))

    def test_the_catalogue_knows_better_than_the_class(self):
        self.assertEqual(
            'FPGA',
            facts.of(
                a_function('10ee', '5005', class_code='070001'), a_spec()
            ).type,
        )

    def test_a_function_that_manages_nvswitches(self):
        for field, value in (
            ('vendor_field_A', 'MLX:MN=MLNX:CSKU=V2:SMDL=SW_MNG'),
            ('vendor_field_3', 'SW_MNG'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError,
                facts.of,
                a_function('15b3', '1021', vpd={field: value}),
                a_spec(),
            )
            self.assertIn('Fabric Manager', str(error))
        facts.of(
            a_function('15b3', '1021', vpd={'part_number': 'MCX755106AS-HEA'}),
            a_spec(),
        )

    def test_the_physical_function_of_a_dpu(self):
        card = pci_address.PciAddress(0, 0x3D, 0, 0)
        for ids, parent, notes in (
            (('15b3', 'a2dc'), None, 1),
            (('15b3', 'a2dc'), card, 0),
            (('15b3', '1021'), None, 0),
        ):
            with sysfs_tree.noting() as found:
                facts.of(a_function(*ids, parent_address=parent), a_spec())
            self.assertEqual(notes, len(found.texts()))
