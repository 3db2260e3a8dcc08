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

from lxml import etree
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt import guest_xml

GOLDEN = """\
<hostdev mode="subsystem" type="pci" managed="yes">
  <source>
    <address domain="0x0001" bus="0x3d" slot="0x1f" function="0x7"/>
  </source>
</hostdev>
<hostdev mode="subsystem" type="pci" managed="no">
  <source>
    <address domain="0x0000" bus="0x81" slot="0x00" function="0x0"/>
  </source>
</hostdev>
<hostdev mode="subsystem" type="pci" managed="no">
  <source>
    <address domain="0x0000" bus="0x81" slot="0x00" function="0x1"/>
  </source>
</hostdev>
<hostdev mode="subsystem" type="mdev" managed="no" model="vfio-pci">
  <source>
    <address uuid="b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55"/>
  </source>
</hostdev>
"""


def an_arq(handle):
    return arq_types.Arq(
        uuid='f4ad4b4e-4aeb-4a6a-8a2f-7f0f5a4e2b61',
        state=arq_types.State.BOUND,
        device_profile_name='p',
        device_profile_group_id=0,
        group={},
        device_rp_uuid='0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11',
        handle=handle,
    )


class TestHostdevs(testtools.TestCase):
    def test_xml(self):
        hostdevs = guest_xml.hostdevs(
            [
                an_arq(
                    attach_handle.AttachHandle(
                        'aaaaaaaa-27a8-4bd9-96a1-f2a37a1f4c55',
                        pci_address.PciAddress(1, 0x3D, 0x1F, 7),
                    )
                ),
                an_arq(
                    attach_handle.AttachHandle(
                        'cccccccc-27a8-4bd9-96a1-f2a37a1f4c55',
                        pci_address.PciAddress(0, 0x81, 0, 0),
                        is_managed=False,
                        further_functions=(
                            pci_address.PciAddress(0, 0x81, 0, 1),
                        ),
                    )
                ),
                an_arq(
                    attach_handle.AttachHandle(
                        'b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55',
                        pci_address.PciAddress(0, 0x81, 0, 0),
                        'nvidia-11',
                    )
                ),
            ]
        )
        self.assertEqual(
            GOLDEN,
            ''.join(
                etree.tostring(
                    hostdev.format_dom(), pretty_print=True, encoding='unicode'
                )
                for hostdev in hostdevs
            ),
        )

    def test_none(self):
        self.assertEqual([], guest_xml.hostdevs([]))

    def test_places(self):
        mdev = 'b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55'
        address = pci_address.PciAddress(0, 0x81, 0, 0)
        arqs = [
            an_arq(attach_handle.AttachHandle(mdev, address, 'nvidia-11')),
            an_arq(
                attach_handle.AttachHandle(
                    'cccccccc-27a8-4bd9-96a1-f2a37a1f4c55',
                    address,
                    further_functions=(pci_address.PciAddress(0, 0x81, 0, 1),),
                )
            ),
        ]
        places = {}
        for bus, name in enumerate((mdev, '0000:81:00.1'), 0x11):
            places[name] = guest_xml.Address()
            places[name].bus = f'{bus:#x}'
            places[name].slot = '0x00'
        hostdevs = guest_xml.hostdevs(arqs, places)
        self.assertEqual(
            [mdev, '0000:81:00.0', '0000:81:00.1'],
            list(map(guest_xml.name, hostdevs)),
        )
        self.assertEqual(
            [
                {'type': 'pci', 'bus': '0x11', 'slot': '0x00'},
                None,
                {'type': 'pci', 'bus': '0x12', 'slot': '0x00'},
            ],
            [
                None if found is None else dict(found.attrib)
                for found in (
                    hostdev.format_dom().find('./address')
                    for hostdev in hostdevs
                )
            ],
        )


class TestFunctions(testtools.TestCase):
    def test_of_the_host(self):
        arq = arq_types.Arq(
            'arq',
            arq_types.State.BOUND,
            'gpu',
            0,
            {},
            'provider',
            attach_handle.AttachHandle(
                'uuid', pci_address.PciAddress(1, 0x81, 0x1F, 7)
            ),
        )
        [hostdev] = guest_xml.hostdevs([arq])
        interface = (
            "<interface type='hostdev'><source><address type='pci' "
            "domain='0x0000' bus='0x3d' slot='0x02' function='0x1'/></source>"
            "<address type='pci' domain='0' bus='0x1' slot='0x0'/></interface>"
        )
        self.assertEqual(
            ['0001:81:1f.7', '0000:3d:02.1'],
            [
                str(function)
                for function in guest_xml.functions(
                    f'<domain><devices>{hostdev.to_xml()}{interface}'
                    "<hostdev mode='subsystem' type='mdev'><source>"
                    "<address uuid='u'/></source></hostdev>"
                    '</devices></domain>'
                )
            ],
        )
        self.assertEqual([], guest_xml.functions('<domain/>'))
