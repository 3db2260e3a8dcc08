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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import pci_address
from nova_accel.model.cyborg import cyborg_texts

_ADDRESSES = st.builds(
    pci_address.PciAddress,
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFF),
    st.integers(0, 0x1F),
    st.integers(0, 7),
)


class TestAddress(testtools.TestCase):
    @given(_ADDRESSES)
    def test_with_and_without_leading_zeros(
        self, address: pci_address.PciAddress
    ) -> None:
        short = {
            'domain': f'{address.domain:x}',
            'bus': f'{address.bus:x}',
            'device': f'{address.slot:x}',
            'function': f'{address.function}',
        }
        for parts in (address.parts, short):
            self.assertEqual(address, cyborg_texts.address(json.dumps(parts)))

    def test_no_address(self) -> None:
        for text in (None, '', '[]', '{}', 'x', '{"bus": "zz"}', 'null'):
            self.assertIsNone(cyborg_texts.address(text))


class TestHandleInfo(testtools.TestCase):
    def test_a_function(self) -> None:
        info = (
            '{"bus": "0c", "device": "1", "domain": "0000", "function": "2",'
            ' "physical_network": "physnet0"}'
        )
        self.assertEqual(
            {
                'domain': '0000',
                'bus': '0c',
                'device': '01',
                'function': '2',
                'physical_network': 'physnet0',
            },
            cyborg_texts.handle_info('PCI', info),
        )

    def test_a_mediated_device(self) -> None:
        info = (
            '{"asked_type": "nvidia-223", "bus": "5e", "device": "00",'
            ' "domain": "0000", "function": "0",'
            ' "vgpu_mark": "nvidia-223_0"}'
        )
        self.assertEqual(
            {
                'domain': '0000',
                'bus': '5e',
                'device': '00',
                'function': '0',
                'asked_type': 'nvidia-223',
            },
            cyborg_texts.handle_info('MDEV', info),
        )

    def test_what_is_no_device(self) -> None:
        good = '{"bus": "0c", "device": "1", "domain": "0", "function": "2"}'
        for type_, info in (
            ('TEST_PCI', good),
            ('MDEV', good),
            ('PCI', 'no JSON'),
            ('PCI', '{"bus": "0c"}'),
            ('PCI', '[1]'),
        ):
            self.assertRaises(
                exceptions.InvalidName, cyborg_texts.handle_info, type_, info
            )


class TestIds(testtools.TestCase):
    def test_pci_ids(self) -> None:
        for text, expected in (
            ('10de', '10de'),
            ('0x10DE', '10de'),
            ('Intel', '0000'),
            ('', '0000'),
        ):
            self.assertEqual(expected, cyborg_texts.pci_id(text))

    def test_product_ids(self) -> None:
        for text, expected in (
            ('{"product_id": "1eb8"}', '1eb8'),
            ('{"product_id": "0x37c8"}', '37c8'),
            ('{"device_id": "d100", "class": "x"}', 'd100'),
            ('{}', '0000'),
            ('miss', '0000'),
            (None, '0000'),
        ):
            self.assertEqual(expected, cyborg_texts.product_id(text))


class TestGroups(testtools.TestCase):
    def test_groups(self) -> None:
        self.assertEqual(
            [{'resources:FPGA': '1'}],
            cyborg_texts.groups('{"groups": [{"resources:FPGA": "1"}]}'),
        )

    def test_no_groups(self) -> None:
        for text in (
            '',
            '[]',
            '{}',
            '{"groups": {}}',
            '{"groups": ["a"]}',
            '{"groups": [{"resources:FPGA": null}]}',
        ):
            self.assertRaises(
                exceptions.InvalidDeviceProfile, cyborg_texts.groups, text
            )
