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

"""A host with one simulated card, which servers have programmed."""

import fixtures
import testtools

from nova_accel.model.fpga import programming_record
from unit.virt.fpga import fpga_card

ONE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c31'
TWO = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c32'
STRANGER = programming_record.Asker('other', 'other')


class ProgrammingTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.host = fpga_card.Host(self.directory)
        self.image = self.host.bitstreams.add(
            function_uuids=(fpga_card.FUNCTION,), function_name='matmul'
        )
        self.other = self.host.bitstreams.add()

    def restarted(self, **kwargs):
        """The next nova-compute, with the same Glance."""
        before = self.host
        self.host = fpga_card.Host(self.directory, **kwargs)
        self.host.bitstreams.images = before.bitstreams.images
        self.host.held_by = before.held_by
        self.host.card.tells_contents = before.card.tells_contents
        return self.host

    def lose_power(self):
        """The host is booted: regions are empty again."""
        for path in self.host.card.directory.iterdir():
            path.write_text('as delivered')
        self.restarted(boot='boot2')
        self.host.regions.recover()

    def holds(self, bitstream_id, name='region0'):
        """The device, and what is said of it, agree."""
        self.assertEqual(
            self.host.bitstreams.sha256(bitstream_id),
            self.host.card.really_loaded(name),
        )
        self.assertEqual(
            bitstream_id, self.host.known(name).contents.bitstream_id
        )

    def is_bad(self, why, name='region0'):
        known = self.host.known(name)
        self.assertIsNone(known.contents)
        self.assertIn(why, known.fault)

    def refused(self, error, why, instance, *arqs, act=None, **kwargs):
        error = self.assertRaises(
            error, act or self.host.boot, instance, *arqs, **kwargs
        )
        self.assertIn(why, str(error))

    def steps(self):
        """Of the history: (bitstream, whether it has ended, failure)."""
        return [
            (
                record.bitstream_id,
                record.finished_at is not None,
                record.failure,
            )
            for record in self.host.records
        ]
