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

import random

import testtools

from rig.benchmark.simulation import clouds
from rig.benchmark.simulation import fpga
from rig.benchmark.simulation import gpu

BOOTS = 300


class TestFpga(testtools.TestCase):
    def found(self, name: str) -> dict[str, float]:
        return fpga.Run(fpga.SCENARIOS[name], random.Random(1)).figures(BOOTS)

    def test_each_boot_with_a_match_gets_it(self) -> None:
        self.assertEqual(100.0, self.found('steady')['of_those_possible_pct'])

    def test_novas_order_seldom_finds_one(self) -> None:
        found = self.found('steady, most free first')
        self.assertLess(found['of_those_possible_pct'], 30)

    def test_idle_regions_are_programmed(self) -> None:
        self.assertEqual(0, self.found('changing')['idle_regions_programmed'])
        self.assertGreater(
            self.found('changing, with stock')['idle_regions_programmed'], 0
        )

    def test_each_region_is_cleaned(self) -> None:
        self.assertEqual(
            BOOTS,
            self.found('cleaned after each guest')['idle_regions_programmed'],
        )


class TestGpu(testtools.TestCase):
    def found(self, way: type[clouds.Chooser]) -> dict[str, float]:
        return gpu.Run(way, 0.7, random.Random(1)).figures(BOOTS)

    def test_no_quad_is_broken_beside_a_pair(self) -> None:
        found = self.found(clouds.ByPolicy)
        self.assertEqual(0, found['quads_broken_beside_pairs'])
        self.assertEqual(100.0, found['sets_on_one_link_set_pct'])

    def test_novas_order_breaks_them(self) -> None:
        found = self.found(clouds.MostFreeFirst)
        self.assertGreater(found['quads_broken_beside_pairs'], 0)
        self.assertLess(found['sets_on_one_link_set_pct'], 100)
