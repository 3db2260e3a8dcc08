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


from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.devices import pci_memory

#: As an H100 has it: 16 MiB, 128 GiB, 32 MiB, and a ROM.
H100 = """\
0x0000210042000000 0x0000210042ffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000200000000000 0x0000201fffffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000210040000000 0x0000210041ffffff 0x000000000014220c
0x000000000000e000 0x000000000000e07f 0x0000000000040101
0x00000000fe000000 0x00000000fe07ffff 0x000000000004e200
"""


class TestMemoryBytes(testtools.TestCase):
    def test_of_a_gpu(self):
        self.assertEqual(
            (128 << 30) + (48 << 20), pci_memory.memory_bytes(H100)
        )

    def test_nothing(self):
        self.assertEqual(0, pci_memory.memory_bytes(''))

    @given(st.text())
    def test_anything_is_told_apart(self, text):
        try:
            self.assertGreaterEqual(pci_memory.memory_bytes(text), 0)
        except exceptions.DeviceError as error:
            self.assertIn('is not a region of a PCI function', str(error))
