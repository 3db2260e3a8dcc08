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

from rig.benchmark import candidates


class TestFigures(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.found = candidates.figures(hosts=3, devices=4, times=1)

    def test_providers(self):
        self.assertEqual(
            {'pooled': 1, 'pooled_by_numa_node': 2, 'apart': 4},
            {
                way: self.found[way]['providers_of_a_host']
                for way in ('pooled', 'pooled_by_numa_node', 'apart')
            },
        )

    def test_all_hosts_are_candidates(self):
        """Each with all ways to serve the groups."""
        self.assertEqual(
            {
                'pooled': {'one_group': 3, 'two_groups': 3},
                'pooled_by_numa_node': {
                    'one_group': 3 * 2,
                    'two_groups': 3 * 2 * 2,
                },
                'apart': {'one_group': 3 * 4, 'two_groups': 3 * 4 * 3},
            },
            {
                way: self.found[way]['candidates']
                for way in ('pooled', 'pooled_by_numa_node', 'apart')
            },
        )

    def test_times(self):
        for found in (
            self.found['pooled']['cpu_ms'],
            self.found['pooled_is_faster'],
        ):
            self.assertEqual({'one_group', 'two_groups'}, found.keys())
            for value in found.values():
                self.assertGreater(value, 0)
