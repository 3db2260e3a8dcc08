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

"""The regions of a host with one simulated card."""

import pathlib
import time
import uuid

import fixtures
from oslo_utils import timeutils
import testtools

from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from unit.virt.fpga import fpga_card

BITSTREAM = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11'
DEVICE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c12'
INSTANCE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c13'
SHA256 = 'a' * 64


class RegionsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.file = pathlib.Path(self.directory) / 'bitstream'
        self.file.write_text('bits')
        self.host = fpga_card.Host(self.directory)

    def program(
        self, instance=INSTANCE, sha256=SHA256, owner=None, check_free=list
    ):
        return self.host.regions.program(
            self.host.target(),
            programming_record.Record(
                str(uuid.uuid4()),
                DEVICE,
                'region0',
                BITSTREAM,
                programming_record.Asker(instance_uuid=instance),
                timeutils.utcnow(with_timezone=True),
            ),
            fpga_bitstream.Bitstream(
                BITSTREAM,
                'image',
                4,
                function_uuids=(fpga_card.FUNCTION,),
                owner=owner,
            ),
            self.file,
            sha256,
            time.monotonic() + 30,
            check_free,
        )

    def die_while_programming(self):
        """Before the device has changed."""
        self.host.card.faults = [KeyboardInterrupt()]
        self.assertRaises(KeyboardInterrupt, self.program)

    def device_says(self, text):
        (self.host.card.directory / 'region0').write_text(text)

    def recover(self, tells_contents=True, boot='boot1'):
        self.host = fpga_card.Host(self.directory, boot=boot)
        self.host.card.tells_contents = tells_contents
        return self.host.regions.recover()
