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

from rig.benchmark import board_candidates


class TestFigures(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.found = board_candidates.figures(hosts=3, times=1)

    def test_candidates(self):
        """Each set of each host, with all orders of its parts."""
        self.assertEqual(
            {1: 3 * 4, 2: 3 * 4, 4: 3 * 2 * 2, 8: 3 * 24},
            self.found['candidates'],
        )

    def test_times(self):
        for found in (self.found['cpu_ms'], self.found['times_of_one_gpu']):
            self.assertEqual([1, 2, 4, 8], list(found))
            for value in found.values():
                self.assertGreater(value, 0)
