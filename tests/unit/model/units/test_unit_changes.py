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

from nova_accel.model.units import free_units
from nova_accel.model.units import unit_changes


class TestDeployable(testtools.TestCase):
    def test_units(self) -> None:
        deployable = unit_changes.ChangedDeployable(
            'host',
            'u',
            'rp',
            'FPGA',
            frozenset('T'),
            'card',
            1,
            'r',
            'b',
            2,
            1,
        )
        self.assertEqual(
            free_units.FreeUnits(
                'u',
                'rp',
                'FPGA',
                frozenset('T'),
                free=1,
                total=2,
                sets=('numa1', 'card'),
                region='r',
                bitstream_id='b',
            ),
            deployable.units(),
        )
        linked = deployable._replace(link_sets=('set4', 'set2')).units()
        self.assertEqual(('set4', 'set2', 'card'), linked.sets)
        self.assertEqual('numa1', linked.numa_node)
        self.assertEqual(
            ('card',), deployable._replace(numa_node=None).units().sets
        )
