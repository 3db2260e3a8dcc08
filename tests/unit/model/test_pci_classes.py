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

import testtools

from nova_accel.model import naming
from nova_accel.model import pci_classes

# Of recorded hosts: memory, PMC, bridges, switches of NVIDIA, root ports,
# communication, DMA channels, performance counters, USB, SMBus, and ports.
HOSTS_OWN = (
    '050000',
    '058000',
    '060000',
    '060100',
    '060400',
    '068000',
    '078000',
    '080020',
    '080600',
    '080700',
    '088000',
    '0c0330',
    '0c0500',
    '110100',
    '118000',
    '130000',
    'ff0000',
)


class TestFault(testtools.TestCase):
    def test_a_line_by_vendor_gets_nothing_of_the_hosts_own(self):
        for type_ in naming.RESOURCE_CLASSES:
            for code in HOSTS_OWN:
                fault = pci_classes.fault(type_, code, False)
                self.assertIn(code, fault, (type_, code))
                self.assertIn(type_, fault)

    def test_devices_of_a_type(self):
        for type_, codes in (
            ('AICHIP', ('120000', '0b4000', '038000')),
            ('FPGA', ('120000', '0b4000')),
            ('GPU', ('030000', '030200', '038000', '120000', '0b4000')),
            ('NIC', ('020000', '020700', '020800', '028000')),
            ('QAT', ('0b4000',)),
            ('SSD', ('010802',)),
            ('VGPU', ('030200', '038000')),
        ):
            for code in codes:
                self.assertIsNone(pci_classes.fault(type_, code, False))

    def test_a_vague_class_needs_the_product(self):
        for type_, code in (
            ('AICHIP', '088000'),
            ('AICHIP', 'ff0000'),
            ('FPGA', '058000'),
            ('FPGA', '070001'),
            ('QAT', '088000'),
            ('TIME', '118000'),
        ):
            self.assertIn(
                '"product_id"', pci_classes.fault(type_, code, False)
            )
            self.assertIsNone(pci_classes.fault(type_, code, True))

    def test_a_product_does_not_help_against_a_clear_class(self):
        for type_, code in (
            ('GPU', '068000'),
            ('GPU', '020000'),
            ('NIC', '030200'),
            ('SSD', '088000'),
            ('VGPU', '010802'),
            ('TIME', '060400'),
        ):
            self.assertIsNotNone(pci_classes.fault(type_, code, True))

    def test_what_nobody_knows_is_no_fault(self):
        self.assertIsNone(pci_classes.fault('GPU', None, False))
        self.assertIsNone(pci_classes.fault('OTHER', '060400', False))

    def test_each_type_is_in_the_table(self):
        self.assertEqual(
            naming.RESOURCE_CLASSES.keys(), pci_classes.CLASSES.keys()
        )
