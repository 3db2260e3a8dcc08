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

"""The file formats of FPGA vendors, as far as their first bytes tell.

OPAE's image of a region, a "green bitstream" (GBS), has a magic number, the
length of its metadata, and the metadata as JSON
(``opae-libs/libbitstream/bitstream.c``). PACSign puts two blocks before it,
which state its purpose
(``python/opae.admin/opae/admin/tools/fpgasupdate.py``). An image or a shell
for the Xilinx Runtime is an xclbin
(``src/runtime_src/core/include/xrt/detail/xclbin.h``, ``struct axlf``).
"""

import json
import uuid

_GBS = b'XeonFPGA\xb7GBSv001'
_LENGTH_BYTES = 4
_METADATA_BYTES = 1 << 16
_BLOCK0 = bytes.fromhex('19fdeab6')
_BLOCKS_BYTES = 1024
_CONTENT_TYPE = slice(8, 12)
#: Content type "green bitstream", subtype "update".
_UPDATE_OF_A_REGION = 2

_XCLBIN = b'xclbin2\x00'
_XCLBIN_UUID = slice(416, 432)

#: How many bytes of a file are read.
HEAD_BYTES = _BLOCKS_BYTES + len(_GBS) + _LENGTH_BYTES + _METADATA_BYTES


def is_gbs(head: bytes) -> bool:
    """Whether OPAE would program only a region with it."""
    if not head.startswith(_BLOCK0):
        return head.startswith(_GBS)
    return int.from_bytes(
        head[_CONTENT_TYPE], 'little'
    ) == _UPDATE_OF_A_REGION and head[_BLOCKS_BYTES:].startswith(_GBS)


def gbs_types(head: bytes) -> tuple[str, ...]:
    """The types of the accelerators that a GBS makes.

    :raises ValueError: it is not a GBS, or its metadata do not tell.
    """
    if not is_gbs(head):
        raise ValueError('it is no image of a region (GBS)')
    begin = _BLOCKS_BYTES if head.startswith(_BLOCK0) else 0
    rest = head[begin + len(_GBS) :]
    length = int.from_bytes(rest[:_LENGTH_BYTES], 'little')
    metadata = rest[
        _LENGTH_BYTES : _LENGTH_BYTES + min(length, _METADATA_BYTES)
    ]
    try:
        clusters = json.loads(metadata)['afu-image']['accelerator-clusters']
        return tuple(
            str(uuid.UUID(cluster['accelerator-type-uuid']))
            for cluster in clusters
        )
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ValueError('its metadata do not say what it does') from error


def is_xclbin(head: bytes) -> bool:
    """Whether the Xilinx Runtime would take it for an image, or a shell."""
    return head.startswith(_XCLBIN)


def xclbin_uuid(head: bytes) -> str:
    """The uuid of an xclbin.

    :raises ValueError: it is not an xclbin.
    """
    if not is_xclbin(head) or len(head) < _XCLBIN_UUID.stop:
        raise ValueError('it is no xclbin')
    return str(uuid.UUID(bytes=head[_XCLBIN_UUID]))
