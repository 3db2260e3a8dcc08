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

"""What a PCI function says of itself in its vital product data.

The format is that of PCI Local Bus 3.0, appendix I; libvirt shows it.
"""

import dataclasses

_NAME, _READ_ONLY, _END = 0x82, 0x90, b'\x78'


@dataclasses.dataclass(frozen=True)
class Product:
    name: str
    part_number: str
    serial_number: str

    def encode(self) -> bytes:
        """The content of the file ``vpd``."""
        fields = b''.join(
            keyword + bytes([len(text)]) + text.encode()
            for keyword, text in (
                (b'PN', self.part_number),
                (b'SN', self.serial_number),
            )
        )
        # The checksum makes the sum of all up to it zero.
        fields += b'RV\x01'
        content = _resource(_NAME, self.name.encode()) + _resource(
            _READ_ONLY, fields, more=1
        )
        return content + bytes([-sum(content) % 256]) + _END


def _resource(tag: int, content: bytes, more: int = 0) -> bytes:
    """:param more: how many bytes of it follow"""
    return bytes([tag]) + (len(content) + more).to_bytes(2, 'little') + content
