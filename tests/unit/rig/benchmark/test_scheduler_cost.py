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

from oslotest import base

from rig.benchmark import scheduler_cost


class TestByHosts(base.BaseTestCase):
    def test_times_by_hosts_and_the_largest_count(self) -> None:
        self.assertEqual(
            {
                'weigher_us': {'10': 1.5, '20': 2.5},
                'cheapest': {'10': 'RAMWeigher', '20': 'CPUWeigher'},
                'statements': 2,
                'plain_statements': 0,
            },
            scheduler_cost.by_hosts(
                {
                    10: {
                        'weigher_us': 1.5,
                        'cheapest': 'RAMWeigher',
                        'statements': 2,
                        'plain_statements': 0,
                    },
                    20: {
                        'weigher_us': 2.5,
                        'cheapest': 'CPUWeigher',
                        'statements': 1,
                        'plain_statements': 0,
                    },
                }
            ),
        )
