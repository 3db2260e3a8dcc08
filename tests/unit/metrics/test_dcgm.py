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

import re

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.metrics import dcgm


class BusIdTest(testtools.TestCase):
    def test_form(self) -> None:
        for address, expected in (
            # As in issue 490 of dcgm-exporter.
            ('0000:8d:00.0', '00000000:8D:00.0'),
            ('0001:0f:1f.7', '00000001:0F:1F.7'),
            # A domain of Intel's VMD has more than four digits.
            ('10000:e1:00.0', '00010000:E1:00.0'),
            ('0000:8D:00.0', '00000000:8D:00.0'),
        ):
            self.assertEqual(expected, dcgm.bus_id(address))

    def test_no_pci_function(self) -> None:
        for address in ('', 'compute-1', '0000:8d:00', '0000:8d:00.0\n'):
            self.assertEqual('', dcgm.bus_id(address))

    @given(
        st.integers(0, 0xFFFFFFFF),
        st.integers(0, 0xFF),
        st.integers(0, 0x1F),
        st.integers(0, 7),
    )
    def test_length_and_letters(
        self, domain: int, bus: int, slot: int, function: int
    ) -> None:
        found = dcgm.bus_id(f'{domain:04x}:{bus:02x}:{slot:02x}.{function}')
        self.assertTrue(
            re.fullmatch('[0-9A-F]{8}(:[0-9A-F]{2}){2}[.][0-7]', found), found
        )
        self.assertEqual(domain, int(found[:8], 16))
