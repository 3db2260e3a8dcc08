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

from nova_accel.model import attribute


class TestReported(testtools.TestCase):
    def test_cyborgs_keys_and_facts(self) -> None:
        self.assertEqual(
            {
                'traits1': 'CUSTOM_A',
                'traits2': 'CUSTOM_B',
                'rc': 'FPGA',
                'firmware': '1.2.3',
            },
            attribute.reported(
                ['CUSTOM_A', 'CUSTOM_B'], 'FPGA', {'firmware': '1.2.3'}
            ),
        )

    def test_a_fact_does_not_stand_for_what_placement_knows(self) -> None:
        self.assertEqual(
            {'rc': 'FPGA', 'traits1': 'any'},
            attribute.reported([], 'FPGA', {'rc': 'x', 'traits1': 'any'}),
        )
