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

import string

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import pci_address
from unit.model import pci_addresses

GARBAGE = (
    '',
    ' ',
    '81:00.0',
    '000:81:00.0',
    '000000000:81:00.0',
    '0000:8:00.0',
    '0000:81:0.0',
    '0000:81:20.0',
    '0000:81:00.8',
    '0000:81:00.00',
    '0000:81:00',
    '0000:81:00:0',
    '0000-81-00.0',
    '0x0000:81:00.0',
    '0000:81:00.0\n',
    '\n0000:81:00.0',
    ' 0000:81:00.0',
    '0000:81:00.0 ',
    '000g:81:00.0',
    '0000:81:00.*',
    '0000:81:-1.0',
    '0000:81:+1.0',
    '0000:8_1:00.0',
    '0000:81:00.0/../..',
    # Digits to str.isdigit() and to int(), but none of a PCI address.
    '٠٠٠٠:81:00.0',
    '0000:81:00.٣',
    '0000:81:00.²',
    '\uff10000:81:00.0',
)


def is_address(text):
    """The grammar again, without regular expressions."""
    colons = text.split(':')
    dots = colons[-1].split('.')
    if len(colons) != 3 or len(dots) != 2:
        return False
    parts = [colons[0], colons[1], *dots]
    return (
        4 <= len(parts[0]) <= 8
        and [len(part) for part in parts[1:]] == [2, 2, 1]
        and set(''.join(parts)) <= set(string.hexdigits)
        and parts[2][0] in '01'
        and parts[3] in '01234567'
    )


@st.composite
def nearly_addresses(draw):
    """An address of which a few characters were replaced or put in."""
    text = list(str(draw(pci_addresses.ANY)))
    for _ in range(draw(st.integers(0, 2))):
        position = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 1))
        text[position : position + width] = draw(
            st.sampled_from('0f9F:._gG\n٣*-') | st.characters()
        )
    return ''.join(text)


class TestPciAddress(testtools.TestCase):
    def test_parse(self):
        self.assertEqual(
            pci_address.PciAddress(0xA, 0x81, 0x1F, 7),
            pci_address.PciAddress.parse('000A:81:1F.7'),
        )

    def test_forms(self):
        address = pci_address.PciAddress(0, 0x3D, 1, 2)
        self.assertEqual('0000:3d:01.2', str(address))
        self.assertEqual('pci_0000_3d_01_2', address.node_device)
        self.assertEqual(
            {'domain': '0000', 'bus': '3d', 'device': '01', 'function': '2'},
            address.parts,
        )

    @given(pci_addresses.ANY)
    def test_text_round_trip(self, address):
        for text in (str(address), str(address).upper()):
            self.assertEqual(address, pci_address.PciAddress.parse(text))

    @given(pci_addresses.ANY)
    def test_node_device_round_trip(self, address):
        self.assertEqual(
            address,
            pci_address.PciAddress.parse_node_device(address.node_device),
        )

    @given(pci_addresses.ANY)
    def test_parts_round_trip(self, address):
        parts = {
            name: int(digits, 16) for name, digits in address.parts.items()
        }
        parts['slot'] = parts.pop('device')
        self.assertEqual(address, pci_address.PciAddress(**parts))

    @given(pci_addresses.ANY, pci_addresses.ANY)
    def test_order_is_that_of_the_bus(self, one, other):
        def number(address):
            return (
                address.domain << 16
                | address.bus << 8
                | address.slot << 3
                | address.function
            )

        self.assertEqual(number(one) < number(other), one < other)
        self.assertEqual(number(one) == number(other), one == other)
        self.assertEqual(one == other, str(one) == str(other))

    def test_garbage_is_refused_by_name(self):
        for text in GARBAGE:
            error = self.assertRaises(
                exceptions.InvalidName, pci_address.PciAddress.parse, text
            )
            self.assertIn(repr(text), str(error))

    @given(nearly_addresses())
    def test_exactly_the_grammar_is_accepted(self, text):
        if is_address(text):
            parsed = pci_address.PciAddress.parse(text)
            self.assertEqual(text.lower().lstrip('0'), str(parsed).lstrip('0'))
        else:
            self.assertRaises(
                exceptions.InvalidName, pci_address.PciAddress.parse, text
            )

    def test_other_node_devices_are_refused(self):
        for name in (
            'computer',
            'net_eth0_52_54_00_12_34_56',
            'pci_0000_81',
            'pci_0000_81_00_0_',
            'pci_0000_81_00_0\n',
            'xpci_0000_81_00_0',
            'pci_0000_81_00_8',
            '0000:81:00.0',
            'mdev_4b20d080_1b54_4048_85b3_a6a62d165c01',
        ):
            error = self.assertRaises(
                exceptions.InvalidName,
                pci_address.PciAddress.parse_node_device,
                name,
            )
            self.assertIn(repr(name), str(error))
