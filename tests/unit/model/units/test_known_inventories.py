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

from typing import Any

import testtools

from nova_accel.model.units import explanation
from nova_accel.model.units import known_inventories
from nova_accel.model.units import unit_changes
from unit.model.cards import slices


def deployable(**facts: Any) -> unit_changes.ChangedDeployable:
    return unit_changes.ChangedDeployable(
        **{
            'hostname': 'compute-1',
            'uuid': 'a',
            'rp_uuid': 'rp',
            'resource_class': 'FPGA',
            'traits': frozenset({'CUSTOM_A'}),
            'device_uuid': 'device',
            'numa_node': 0,
            'region': None,
            'bitstream_id': None,
            'total': 1,
            'free': 0,
            **facts,
        }
    )


class TestMadeOf(testtools.TestCase):
    def units(
        self, *deployables: unit_changes.ChangedDeployable, claimed: int = 0
    ) -> dict[str | None, int]:
        [found] = known_inventories.build(
            deployables, {'rp': {'FPGA': claimed}}, frozenset(), {}
        )
        return dict(found.units)

    def test_each_reason(self) -> None:
        self.assertEqual(
            {None: 1, 'in use': 3, 'not clean': 2},
            self.units(deployable(total=6, free=1, in_use=3)),
        )
        for unusable in ('faulty', 'disabled'):
            self.assertEqual(
                {'in use': 1, unusable: 2},
                self.units(deployable(total=3, in_use=1, unusable=unusable)),
            )
        self.assertEqual({}, self.units(deployable(total=0)))

    def test_what_others_of_its_card_exclude(self) -> None:
        card = {'total': 7, 'free': 2, 'in_use': 1, 'slices': (slices.WHOLE,)}
        half = slices.eighths('mig:3g.40gb', 0, 4)
        [found] = known_inventories.build(
            [deployable(**card)], {}, frozenset(), {'rp': {half}}
        )
        self.assertEqual(
            {None: 2, 'in use': 1, 'on cards that are mig': 4}, found.units
        )
        self.assertEqual(
            {None: 2, 'in use': 1, 'not clean': 4},
            self.units(deployable(**card)),
        )
        self.assertEqual(
            {'in use': 1, 'faulty': 6},
            self.units(deployable(**card | {'free': 0}, unusable='faulty')),
        )

    def test_a_claimed_unit_is_in_use(self) -> None:
        pool = (
            deployable(uuid='a', total=2, free=2),
            deployable(uuid='b', total=2, free=1, in_use=1),
        )
        self.assertEqual({None: 1, 'in use': 3}, self.units(*pool, claimed=2))
        # More is claimed than is free.
        self.assertEqual({'in use': 4}, self.units(*pool, claimed=9))

    def test_by_provider(self) -> None:
        found = known_inventories.build(
            [
                deployable(free=1),
                deployable(uuid='b', traits=frozenset({'CUSTOM_B'})),
                deployable(hostname='other', rp_uuid='rp2', free=1),
            ],
            {},
            frozenset({'other'}),
            {},
        )
        self.assertEqual(
            [
                explanation.Inventory(
                    'compute-1',
                    'rp',
                    'FPGA',
                    frozenset({'CUSTOM_A', 'CUSTOM_B'}),
                    (),
                    {None: 1, 'not clean': 1},
                ),
                explanation.Inventory(
                    'other',
                    'rp2',
                    'FPGA',
                    frozenset({'CUSTOM_A'}),
                    (),
                    {None: 1},
                    True,
                ),
            ],
            found,
        )
