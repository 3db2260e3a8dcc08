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

from rig.benchmark import peer as benchmark_peer


def figures(**rates: float) -> dict[str, object]:
    return {
        'cycles_per_s': {
            name.removeprefix('c'): rate for name, rate in rates.items()
        }
    }


class TestRatio(base.BaseTestCase):
    def test_of_what_both_have(self) -> None:
        ours = {
            '0': figures(c1=30.0, c8=50.0),
            '100000': figures(c1=30.0),
            '1000_admin': figures(c1=30.0, c8=52.0),
        }
        peer = {
            '0': figures(c1=10.0, c8=20.0),
            '1000_admin': figures(c1=0.3, c8=0.5),
        }
        self.assertEqual(
            {'0': {'1': 3.0, '8': 2.5}, '1000_admin': {'1': 100, '8': 104}},
            benchmark_peer.ratio(ours, peer),
        )
