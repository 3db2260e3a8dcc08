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


import testtools

from rig.benchmark import fleet


class TestFleet(testtools.TestCase):
    def test_2000_devices_take_less_than_a_second(self) -> None:
        found = fleet.measure(2000)
        self.assertEqual((2000, 8), (found['devices'], found['compared']))
        self.assertLess(found['join_s'] + found['draw_s'], 1)
        # A browser still loads it at once.
        self.assertLess(found['bytes'], 8_000_000)
