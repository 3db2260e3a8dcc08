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

import fixtures
import testtools

from nova_accel import conf
from rig.benchmark import fpga


class TestVerification(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def test_figures(self):
        found = fpga.verification(size_mb=2, times=1)
        self.assertEqual(2, found.pop('bitstream_mb'))
        self.assertEqual(
            {'hashes_mb_per_s', 'fetch_and_verify_mb_per_s', 'verify_ratio'},
            set(found),
        )
        for name, value in found.items():
            self.assertGreater(value, 0, name)

    def test_the_configuration_is_as_before(self):
        before = conf.CONF.glance.api_servers
        fpga.verification(size_mb=1, times=1)
        self.assertEqual(before, conf.CONF.glance.api_servers)


class TestBitstreams(testtools.TestCase):
    def test_a_second_time_nothing_is_downloaded(self):
        self.useFixture(fixtures.FakeLogger())
        found = self.useFixture(fpga.Bitstreams(10000))
        image_id = found.glance.add(b'bits' * 100)
        self.assertEqual(
            [True, False], [found.fetch(image_id) for _time in range(2)]
        )
