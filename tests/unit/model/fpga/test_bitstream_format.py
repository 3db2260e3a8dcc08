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

import testtools

from nova_accel.model.fpga import bitstream_format

UUID = 'd8424dc4-a4a3-c413-f89e-433683f9040b'
BLOCK0 = bytes.fromhex('19fdeab6')


def gbs(metadata=None, length=None):
    if metadata is None:
        metadata = json.dumps(
            {
                'afu-image': {
                    'accelerator-clusters': [
                        {'accelerator-type-uuid': UUID.upper()}
                    ]
                }
            }
        ).encode()
    return (
        b'XeonFPGA\xb7GBSv001'
        + (length or len(metadata)).to_bytes(4, 'little')
        + metadata
    )


def signed(content, for_what=2):
    return BLOCK0 + bytes(4) + bytes([for_what]) + bytes(1015) + content


class TestGbs(testtools.TestCase):
    def test_types(self):
        for head in (gbs() + bytes(100), signed(gbs())):
            self.assertTrue(bitstream_format.is_gbs(head))
            self.assertEqual((UUID,), bitstream_format.gbs_types(head))

    def test_none(self):
        for head in (
            b'',
            BLOCK0,
            b'XeonFPGA',
            b'x' + gbs(),
            # Of the static part, and of the card's controller.
            signed(gbs(), 0),
            signed(gbs(), 1),
            signed(b'BMC' + gbs()),
            bytes(1024) + gbs(),
        ):
            self.assertFalse(bitstream_format.is_gbs(head))
            error = self.assertRaises(
                ValueError, bitstream_format.gbs_types, head
            )
            self.assertIn('no image of a region', str(error))

    def test_does_not_say(self):
        for head in (
            gbs(b''),
            gbs(b'{}'),
            gbs(b'[]'),
            gbs(b'\xff'),
            gbs(b'{"afu-image": null}'),
            gbs(length=9),
            gbs(b'[' * 60000),
            gbs(length=(1 << 32) - 1) + b' more',
        ):
            error = self.assertRaises(
                ValueError, bitstream_format.gbs_types, head
            )
            self.assertIn('do not say', str(error))


class TestXclbin(testtools.TestCase):
    def test_uuid(self):
        head = (
            b'xclbin2\x00' + bytes(408) + bytes.fromhex(UUID.replace('-', ''))
        )
        self.assertTrue(bitstream_format.is_xclbin(head))
        for found in (head, head + b'more'):
            self.assertEqual(UUID, bitstream_format.xclbin_uuid(found))
        for found in (head[:-1], b'x' + head, b''):
            self.assertRaises(ValueError, bitstream_format.xclbin_uuid, found)
