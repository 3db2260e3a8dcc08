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

import pathlib

import fixtures
import testtools

from nova_accel.model.links import link_discovery
from nova_accel.model.links import nvlink_peers
from nova_accel.virt.publishing import link_memory

KNOWN = link_memory.Known(
    {
        '0000:1b:00.0': link_memory.KnownGpu(
            '1420',
            3,
            True,
            nvlink_peers.Peers(
                frozenset({'0000:c5:00.0'}), frozenset({'0000:43:00.0'})
            ),
        ),
        '0000:43:00.0': link_memory.KnownGpu(
            None, None, False, nvlink_peers.Peers()
        ),
    },
    (link_discovery.KnownPartition(frozenset({1, 3})),),
)


class TestLinkMemory(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'links.json'
        )

    def reopened(self):
        return link_memory.LinkMemory(self.path)

    def test_it_is_known_after_a_restart(self):
        self.assertEqual(link_memory.Known(), self.reopened().read())
        self.reopened().write(KNOWN)
        self.assertEqual(KNOWN, self.reopened().read())

    def test_nothing_is_written_if_nothing_is_known(self):
        self.reopened().write(link_memory.Known())
        self.assertFalse(self.path.exists())

    def test_a_damaged_file_is_an_empty_one(self):
        log = self.useFixture(fixtures.FakeLogger())
        for content in ('{"gp', '[]', '{"gpus": {"x": {}}}'):
            self.path.write_text(content)
            self.assertEqual(link_memory.Known(), self.reopened().read())
        self.assertEqual(3, log.output.count(str(self.path)))
