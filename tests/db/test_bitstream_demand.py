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

import testscenarios

from db.rows import test_demand_rows

load_tests = testscenarios.load_tests_apply_scenarios

A = test_demand_rows.A
asking = test_demand_rows.asking


class TestRead(test_demand_rows.DemandTestCase):
    def test_it_halves_with_time(self) -> None:
        self.acquire(asking(A))
        self.age(21600)
        self.assertEqual({A: 0.5}, self.demand())
        self.acquire(asking(A))
        self.assertEqual({A: 1.5}, self.demand())

    def test_what_is_long_ago_is_no_demand(self) -> None:
        self.acquire(asking(A))
        self.age(30 * 86400)
        self.assertEqual({}, self.demand())
