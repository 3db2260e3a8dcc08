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


def mdev_xml(
    parent='pci_0000_81_00_0',
    type_="<type id='nvidia-11'/>",
    uuid=f'<uuid>{UUID}</uuid>',
):
    return f'''
        <device>
          <name>mdev_0d0a4b1e_52f5_5f8e_9d3c_6a1b2c3d4e5f_0000_81_00_0</name>
          <parent>{parent}</parent>
          <capability type='mdev'>{type_}{uuid}</capability>
        </device>'''


class TestParsePci(testtools.TestCase):
    def assert_refused(self, xml, text):
        error = self.assertRaises(
            exceptions.DeviceError, pci_function.parse_pci, xml
        )
        self.assertIn(text, str(error))

    def test_plain(self):
        self.assertEqual(
            pci_function.PciFunction(
                'pci_0000_81_00_0',
                an_address('0000:81:00.0'),
                '10de',
                '13f2',
                'NVIDIA Corporation',
                None,
                1,
                upstream=an_address('0000:80:01.0'),
            ),
            pci_function.parse_pci(pci_xml("<numa node='1'/>")),
        )

    def test_the_driver_that_it_is_bound_to(self):
        xml = pci_xml()
        self.assertIsNone(pci_function.parse_pci(xml).driver)
        self.assertEqual(
            'vfio-pci',
            pci_function.parse_pci(
                xml.replace(
                    '<capability',
                    '<driver><name>vfio-pci</name></driver><capability',
                    1,
                )
            ).driver,
        )

    def test_serial_number(self):
        self.assertIsNone(pci_function.parse_pci(pci_xml()).card_serial_number)
        for number in 'MT2019X1', '':
            self.assertEqual(
                number or None,
                pci_function.parse_pci(
                    pci_xml(f"""<capability type='vpd'><name>x</name>
                    <fields access='readonly'><manufacture_id/>
                    <serial_number>{number}</serial_number>
                    </fields></capability>""")
                ).card_serial_number,
            )

    def test_no_numa_node(self):
        self.assertIsNone(pci_function.parse_pci(pci_xml()).numa_node)

    def test_domain_of_a_volume_management_device(self):
        function = pci_function.parse_pci(
            pci_xml(
                address=('65536', '1', '31', '7'), name='pci_10000_01_1f_7'
            )
        )
        self.assertEqual('10000:01:1f.7', str(function.address))
        self.assertEqual(function.name, function.address.node_device)

    def test_physical_function(self):
        function = pci_function.parse_pci(
            pci_xml('''
            <capability type='virt_functions' maxCount='16'>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x1'/>
              <address domain='0x0000' bus='0x81' slot='0x01' function='0x0'/>
            </capability>''')
        )
        self.assertEqual(
            ['0000:81:00.1', '0000:81:01.0'],
            [str(address) for address in function.virtual_functions],
        )
        self.assertIsNone(function.parent_address)

    def test_physical_function_without_virtual_ones(self):
        function = pci_function.parse_pci(
            pci_xml("<capability type='virt_functions' maxCount='16'/>")
        )
        self.assertEqual((), function.virtual_functions)

    def test_virtual_function(self):
        function = pci_function.parse_pci(
            pci_xml(
                '''
            <capability type='phys_function'>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x0'/>
            </capability>''',
                address=('0', '129', '0', '1'),
            )
        )
        self.assertEqual(an_address('0000:81:00.0'), function.parent_address)

    def test_mdev_types(self):
        function = pci_function.parse_pci(
            pci_xml('''
            <capability type='mdev_types'>
              <type id='nvidia-11'><name>GRID M60-0B</name>
                <deviceAPI>vfio-pci</deviceAPI>
                <availableInstances>16</availableInstances></type>
              <type id='nvidia-12'><deviceAPI>vfio-pci</deviceAPI>
                <availableInstances>0</availableInstances></type>
            </capability>''')
        )
        self.assertEqual(
            {'nvidia-11': 16, 'nvidia-12': 0}, function.mdev_types
        )

    def test_class(self):
        for code, is_bridge in (
            ('0x030200', False),
            ('0x060400', True),
            ('0x60000', True),
            ('0x060100', False),
            ('0x060900', True),
        ):
            function = pci_function.parse_pci(
                pci_xml(f'<class>{code}</class>')
            )
            self.assertEqual(int(code, 16), int(function.class_code, 16))
            self.assertEqual(6, len(function.class_code))
            self.assertEqual(is_bridge, function.is_bridge)
        self.assertIsNone(pci_function.parse_pci(pci_xml()).class_code)

    def test_bridge_without_a_class(self):
        self.assertTrue(
            pci_function.parse_pci(
                pci_xml("<capability type='pci-bridge'/>")
            ).is_bridge
        )

    def test_iommu_group(self):
        function = pci_function.parse_pci(
            pci_xml('''
            <iommuGroup number='12'>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x0'/>
              <address domain='0x0000' bus='0x81' slot='0x00' function='0x1'/>
            </iommuGroup>''')
        )
        self.assertEqual(12, function.iommu_group)
        self.assertEqual(
            (an_address('0000:81:00.0'), an_address('0000:81:00.1')),
            function.iommu_members,
        )

    def test_no_iommu(self):
        function = pci_function.parse_pci(pci_xml())
        self.assertIsNone(function.iommu_group)
        self.assertEqual((), function.iommu_members)

    def test_link(self):
        function = pci_function.parse_pci(
            pci_xml('''
            <pci-express>
              <link validity='cap' port='0' speed='16' width='16'/>
              <link validity='sta' speed='2.5' width='8'/>
            </pci-express>''')
        )
        self.assertEqual(
            ('16 GT/s x16', '2.5 GT/s x8'),
            (str(function.link_max), str(function.link)),
        )

    def test_no_link(self):
        for more in (
            '',
            "<pci-express><link validity='sta' width='0'/></pci-express>",
        ):
            function = pci_function.parse_pci(pci_xml(more))
            self.assertIsNone(function.link)
            self.assertIsNone(function.link_max)

    def test_how_many_virtual_functions_it_can_have(self):
        self.assertEqual(
            0, pci_function.parse_pci(pci_xml()).max_virtual_functions
        )
        self.assertEqual(
            16,
            pci_function.parse_pci(
                pci_xml(
                    "<capability type='virt_functions' maxCount='16'/>",
                )
            ).max_virtual_functions,
        )

    def test_vital_product_data(self):
        function = pci_function.parse_pci(
            pci_xml('''
            <capability type='vpd'><name>BlueField-2</name>
              <fields access='readonly'>
                <change_level>B1</change_level>
                <part_number>MBF2H332A</part_number>
                <serial_number> MT2113X00000 </serial_number>
                <vendor_field index='0'>PCIeGen4 x8</vendor_field>
              </fields>
            </capability>''')
        )
        self.assertEqual(
            {
                'card_name': 'BlueField-2',
                'change_level': 'B1',
                'part_number': 'MBF2H332A',
                'serial_number': 'MT2113X00000',
                'vendor_field_0': 'PCIeGen4 x8',
            },
            function.vpd,
        )

    def test_what_it_is_behind(self):
        xml = pci_xml()
        self.assertEqual(
            an_address('0000:80:01.0'), pci_function.parse_pci(xml).upstream
        )
        self.assertIsNone(
            pci_function.parse_pci(
                xml.replace('pci_0000_80_01_0', 'computer')
            ).upstream
        )

    def test_card(self):
        function = pci_function.parse_pci(pci_xml())
        self.assertEqual(function.address, function.card)
        card = an_address('0000:81:00.0')
        self.assertEqual(
            card,
            dataclasses.replace(
                function,
                address=an_address('0000:81:00.1'),
                parent_address=card,
            ).card,
        )

    def test_broken(self):
        for xml, text in (
            ('', 'cannot be read'),
            ('<device>', 'cannot be read'),
            ('<domain/>', 'cannot be read'),
            (pci_xml(address=('x', '1', '1', '1')), 'cannot be read'),
            (mdev_xml(), 'no PCI capability'),
            (pci_xml(address=('0', '129', '32', '0')), '0000:81:20.0'),
            ("<device><capability type='pci'/></device>", 'unusable'),
            (pci_xml('<class>display</class>'), 'display'),
            (pci_xml('<iommuGroup/>'), 'unusable'),
            (
                pci_xml("<iommuGroup number='1'><address/></iommuGroup>"),
                'unusable',
            ),
            (
                pci_xml(
                    "<pci-express><link validity='cap' speed='fast' "
                    "width='1'/></pci-express>"
                ),
                'fast',
            ),
            (
                pci_xml("<capability type='virt_functions' maxCount='x'/>"),
                'unusable',
            ),
            (
                pci_xml(
                    "<capability type='mdev_types'><type id='a'/></capability>"
                ),
                'availableInstances',
            ),
        ):
            self.assert_refused(xml, text)


class TestParseMdev(testtools.TestCase):
    def test_plain(self):
        self.assertEqual(
            pci_function.Mdev(UUID, 'nvidia-11', an_address('0000:81:00.0')),
            pci_function.parse_mdev(mdev_xml()),
        )

    def test_parent_that_is_no_pci_device(self):
        for parent in ('ap_matrix', 'css_0_0_0052', 'mtty_mtty'):
            self.assertIsNone(pci_function.parse_mdev(mdev_xml(parent=parent)))

    def test_broken(self):
        for xml in (
            '<device/>',
            mdev_xml(type_=''),
            mdev_xml(uuid=''),
            pci_xml(),
            mdev_xml().replace('parent', 'child'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError, pci_function.parse_mdev, xml
            )
            self.assertIn('unusable', str(error))
