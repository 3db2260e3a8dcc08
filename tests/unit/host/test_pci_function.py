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

from nova_accel import exceptions
from nova_accel.host import pci_function
from nova_accel.model import pci_address

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'


def an_address(text):
    return pci_address.PciAddress.parse(text)


def pci_xml(*more, address=('0', '129', '0', '0'), name='pci_0000_81_00_0'):
    domain, bus, slot, function = address
    return f'''
        <device>
          <name>{name}</name>
          <parent>pci_0000_80_01_0</parent>
          <capability type='pci'>
            <domain>{domain}</domain><bus>{bus}</bus>
            <slot>{slot}</slot><function>{function}</function>
            <product id='0x13F2'/>
            <vendor id='0x10de'>NVIDIA Corporation</vendor>
            {''.join(more)}
          </capability>
        </device>'''


def mdev_xml(parent='pci_0000_81_00_0', type_="<type id='nvidia-11'/>",
             uuid=f'<uuid>{UUID}</uuid>'):
    return f'''
        <device>
          <name>mdev_0d0a4b1e_52f5_5f8e_9d3c_6a1b2c3d4e5f_0000_81_00_0</name>
          <parent>{parent}</parent>
          <capability type='mdev'>{type_}{uuid}</capability>
        </device>'''


class TestParsePci(testtools.TestCase):

    def assert_refused(self, xml, text):
        error = self.assertRaises(
            exceptions.DeviceError, pci_function.parse_pci, xml)
        self.assertIn(text, str(error))

    def test_plain(self):
        self.assertEqual(
            pci_function.PciFunction(
                'pci_0000_81_00_0', an_address('0000:81:00.0'), '10de',
                '13f2', 'NVIDIA Corporation', None, 1),
            pci_function.parse_pci(pci_xml("<numa node='1'/>")))

    def test_the_driver_that_it_is_bound_to(self):
        xml = pci_xml()
        self.assertIsNone(pci_function.parse_pci(xml).driver)
        self.assertEqual('vfio-pci', pci_function.parse_pci(xml.replace(
            '<capability', '<driver><name>vfio-pci</name></driver>'
            '<capability', 1)).driver)

    def test_no_numa_node(self):
        self.assertIsNone(pci_function.parse_pci(pci_xml()).numa_node)

    def test_domain_of_a_volume_management_device(self):
        function = pci_function.parse_pci(pci_xml(
            address=('65536', '1', '31', '7'), name='pci_10000_01_1f_7'))
        self.assertEqual('10000:01:1f.7', str(function.address))
        self.assertEqual(function.name, function.address.node_device)

    def test_physical_function(self):
        function = pci_function.parse_pci(pci_xml('''
            <capability type='virt_functions' maxCount='16'>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x1'/>
              <address domain='0x0000' bus='0x81' slot='0x01' function='0x0'/>
            </capability>'''))
        self.assertEqual(
            ['0000:81:00.1', '0000:81:01.0'],
            [str(address) for address in function.virtual_functions])
        self.assertIsNone(function.parent_address)

    def test_physical_function_without_virtual_ones(self):
        function = pci_function.parse_pci(pci_xml(
            "<capability type='virt_functions' maxCount='16'/>"))
        self.assertEqual((), function.virtual_functions)

    def test_virtual_function(self):
        function = pci_function.parse_pci(pci_xml('''
            <capability type='phys_function'>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x0'/>
            </capability>''', address=('0', '129', '0', '1')))
        self.assertEqual(an_address('0000:81:00.0'), function.parent_address)

    def test_mdev_types(self):
        function = pci_function.parse_pci(pci_xml('''
            <capability type='mdev_types'>
              <type id='nvidia-11'><name>GRID M60-0B</name>
                <deviceAPI>vfio-pci</deviceAPI>
                <availableInstances>16</availableInstances></type>
              <type id='nvidia-12'><deviceAPI>vfio-pci</deviceAPI>
                <availableInstances>0</availableInstances></type>
            </capability>'''))
        self.assertEqual({'nvidia-11': 16, 'nvidia-12': 0},
                         function.mdev_types)

    def test_broken(self):
        for xml, text in (
                ('', 'cannot be read'),
                ('<device>', 'cannot be read'),
                ('<domain/>', 'cannot be read'),
                (pci_xml(address=('x', '1', '1', '1')), 'cannot be read'),
                (mdev_xml(), 'no PCI capability'),
                (pci_xml(address=('0', '129', '32', '0')), '0000:81:20.0'),
                ("<device><capability type='pci'/></device>", 'unusable'),
                (pci_xml("<capability type='mdev_types'><type id='a'/>"
                         '</capability>'), 'availableInstances')):
            self.assert_refused(xml, text)


class TestParseMdev(testtools.TestCase):

    def test_plain(self):
        self.assertEqual(
            pci_function.Mdev(UUID, 'nvidia-11', an_address('0000:81:00.0')),
            pci_function.parse_mdev(mdev_xml()))

    def test_parent_that_is_no_pci_device(self):
        for parent in ('ap_matrix', 'css_0_0_0052', 'mtty_mtty'):
            self.assertIsNone(
                pci_function.parse_mdev(mdev_xml(parent=parent)))

    def test_broken(self):
        for xml in ('<device/>', mdev_xml(type_=''), mdev_xml(uuid=''),
                    pci_xml(), mdev_xml().replace('parent', 'child')):
            error = self.assertRaises(
                exceptions.DeviceError, pci_function.parse_mdev, xml)
            self.assertIn('unusable', str(error))
