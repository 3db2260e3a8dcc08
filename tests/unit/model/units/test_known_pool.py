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

import fixtures
import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import known_pool
from nova_accel.model.units import unit_choice

PACK, SPREAD = unit_choice.UnitPolicy.PACK, unit_choice.UnitPolicy.SPREAD


def units(uuid: str, free: int = 1, **facts: Any) -> free_units.FreeUnits:
    return free_units.FreeUnits(
        uuid,
        'rp',
        **{
            'resource_class': 'FPGA',
            'traits': frozenset('A'),
            'free': free,
            'total': 2,
            **facts,
        },
    )


def wanted(amount: int = 1, *traits: str) -> device_profile.Group:
    return device_profile.Group({'FPGA': amount}, frozenset(traits))


def pool(
    *deployables: free_units.FreeUnits, **claimed: int
) -> known_pool.KnownPool:
    return known_pool.KnownPool(deployables, claimed, {})


class TestKnownPool(testtools.TestCase):
    def test_cost_is_that_of_the_policy(self) -> None:
        deployables = units('a', 2), units('b')
        one = wanted()
        for policy in (PACK, SPREAD, PACK):
            choice = unit_choice.choose(one, deployables, policy)
            assert choice is not None
            self.assertEqual(choice.cost, pool(*deployables).cost(one, policy))

    def test_no_cost(self) -> None:
        some = pool(units('a'), units('b'))
        self.assertIsNotNone(some.cost(wanted(2), PACK))
        self.assertIsNone(some.cost(wanted(3), PACK))
        self.assertIsNone(some.cost(wanted(1, 'B'), PACK))

    def test_the_policy_is_asked_once(self) -> None:
        some, one, many = pool(units('a')), wanted(), wanted(3)
        for _again in range(2):
            self.assertIsNotNone(some.cost(one, PACK))
            self.assertIsNone(some.cost(many, PACK))
            with fixtures.MonkeyPatch(
                'nova_accel.model.units.unit_choice.choose', None
            ):
                self.assertIsNotNone(some.cost(wanted(), PACK))
                self.assertIsNone(some.cost(wanted(3), PACK))
            self.assertIsNotNone(some.cost(one, SPREAD))

    def test_demand_counts(self) -> None:
        held = units('a', bitstream_id='b')
        costs = [
            known_pool.KnownPool([held], {}, {'b': demand}).cost(
                wanted(), PACK
            )
            for demand in (1.0, 2.0)
        ]
        self.assertNotEqual(*costs)
        self.assertTrue(pool(held).holds_bitstreams)
        self.assertFalse(pool(units('a')).holds_bitstreams)

    def test_claimed_units_are_not_free(self) -> None:
        some = pool(units('a', 2), units('v', resource_class='VGPU'), FPGA=1)
        self.assertEqual([1, 1], [each.free for each in some.units])
        some = pool(units('a', 2), units('b', 2), FPGA=3)
        self.assertEqual([0, 1], sorted(each.free for each in some.units))
        self.assertEqual({'FPGA': 1}, some.room(wanted()))

    def test_more_is_claimed_than_is_free(self) -> None:
        some = pool(
            units('a'), units('b'), units('v', resource_class='VGPU'), FPGA=3
        )
        self.assertEqual([0, 0, 1], [each.free for each in some.units])

    def test_room(self) -> None:
        some = pool(
            units('a', 2),
            units('b', traits=frozenset('AB')),
            units('v', resource_class='VGPU'),
        )
        self.assertEqual({'FPGA': 3}, some.room(wanted()))
        self.assertEqual({'FPGA': 1}, some.room(wanted(1, 'B')))
        self.assertEqual({'FPGA': 0}, some.room(wanted(1, 'C')))
        both = device_profile.Group({'FPGA': 1, 'VGPU': 1, 'CUSTOM_QAT': 1})
        for _again in range(2):
            self.assertEqual(
                {'FPGA': 3, 'VGPU': 1, 'CUSTOM_QAT': 0}, some.room(both)
            )

    def test_little_is_remembered(self) -> None:
        some = pool(units('a', 2))
        for amount in range(1, 1000):
            some.cost(wanted(amount), PACK)
            some.room(wanted(amount))
        self.assertLessEqual(len(some._costs), 64)
        self.assertLessEqual(len(some._room), 64)
