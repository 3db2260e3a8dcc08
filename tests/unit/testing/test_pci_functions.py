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

import dataclasses

import testtools

from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import libvirt
from nova_accel.testing import pci_functions

CARD = pci_functions.function(
    '0000:3d:00.0',
    '8086',
    '37c8',
    class_code='0b4000',
    driver='c6xx',
    numa_node=1,
    product='QAT',
    vendor='Intel',
    max_virtual_functions=16,
)
GPU = pci_functions.function(
    '0000:3e:00.0',
    '10de',
    '13f2',
    with_functions=['0000:3e:00.1'],
    mdev_types={'nvidia-11': 4},
    upstream=pci_address.PciAddress(0, 0, 1, 0),
)
BRIDGE = pci_functions.function(
    '0000:00:01.0', '8086', '3420', class_code='060400', is_bridge=True
)


class TestXml(testtools.TestCase):
    def test_it_is_read_as_what_it_was(self):
        for function in (
            GPU,
            BRIDGE,
            *pci_functions.virtual_functions(
                CARD, 9, '37c9', mdev_types={'a': 1}
            ),
        ):
            read = pci_function.parse_pci(pci_functions.xml(function))
            # A node device has names, though they may be empty.
            self.assertEqual(
                function,
                dataclasses.replace(
                    read, product=function.product, vendor=function.vendor
                ),
            )


class TestVirtualFunctions(testtools.TestCase):
    def test_card_and_parts_name_each_other(self):
        card, *parts = pci_functions.virtual_functions(CARD, 9, '37c9')
        self.assertEqual(
            card.virtual_functions, tuple(part.address for part in parts)
        )
        self.assertEqual(
            {CARD.address}, {part.parent_address for part in parts}
        )
        self.assertEqual('0000:3d:01.1', str(parts[-1].address))
        self.assertEqual(9, len({part.iommu_group for part in parts}))


class TestSriov(testtools.TestCase):
    def test_they_are_there_after_the_write(self):
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        pci_functions.add(info, CARD)
        fake = self.useFixture(libvirt.Libvirt(info))
        pci_functions.sriov(info, fake.sysfs, {str(CARD.address): '37c9'})
        nodes = libvirt_devices.NodeDevices(fake.host)
        self.assertEqual(1, len(nodes.look().functions))
        fake.sysfs.sysfs.write(CARD.address, 'sriov_numvfs', '4')
        functions = nodes.look().functions
        self.assertEqual(5, len(functions))
        self.assertEqual(4, len(functions[CARD.address].virtual_functions))
