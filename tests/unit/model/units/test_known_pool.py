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

from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import known_pool
from nova_accel.model.units import unit_choice
from unit.model.cards import slices

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


def card(*taken: card_slice.CardSlice, **claimed: int) -> known_pool.KnownPool:
    """A card that is whole, or two halves, of which some are taken."""
    return pool(
        *(
            units(
                name,
                sum(not any(map(each.excludes, taken)) for each in offered),
                resource_class=f'CUSTOM_SHAPE_{name}',
                total=len(offered),
                slices=tuple(offered),
                taken=tuple(each for each in taken if each in offered),
            )
            for name, offered in OFFERED.items()
        ),
        **claimed,
    )


OFFERED = {
    'WHOLE': [slices.WHOLE],
    'HALF': [slices.eighths('mig:3g.40gb', start, 4) for start in (0, 4)],
    'EIGHTH': [slices.eighths('mig:1g.10gb', start, 1) for start in range(7)],
}


class TestSharedCards(testtools.TestCase):
    def free(self, found: known_pool.KnownPool) -> list[int]:
        return [each.free for each in found.units]

    def test_what_is_claimed_leaves_room_for_fewer(self) -> None:
        self.assertEqual([1, 2, 7], self.free(card()))
        self.assertEqual([0, 1, 4], self.free(card(CUSTOM_SHAPE_HALF=1)))
        self.assertEqual([0, 0, 0], self.free(card(CUSTOM_SHAPE_WHOLE=1)))
        self.assertEqual(
            [0, 0, 3],
            self.free(card(OFFERED['EIGHTH'][0], CUSTOM_SHAPE_HALF=1)),
        )

    def test_what_breaks_least_first_and_an_empty_card_last(self) -> None:
        eighth = device_profile.Group({'CUSTOM_SHAPE_EIGHTH': 1})
        broken, half, empty = (
            each.cost(eighth, PACK)
            for each in (
                card(OFFERED['EIGHTH'][0]),
                card(OFFERED['HALF'][0]),
                card(),
            )
        )
        assert broken is not None and half is not None and empty is not None
        self.assertLess(broken, half)
        self.assertLess(half, empty)

    def test_of_equal_losses_the_fullest_card_first(self) -> None:
        half = device_profile.Group({'CUSTOM_SHAPE_HALF': 1})
        full, fuller = (
            card(*OFFERED['EIGHTH'][:number]).cost(half, PACK)
            for number in (1, 2)
        )
        assert full is not None and fuller is not None
        self.assertLess(fuller, full)

    def test_spread(self) -> None:
        eighth = device_profile.Group({'CUSTOM_SHAPE_EIGHTH': 1})
        empty, broken, half = (
            each.cost(eighth, SPREAD)
            for each in (
                card(),
                card(OFFERED['EIGHTH'][0]),
                card(OFFERED['HALF'][0]),
            )
        )
        assert broken is not None and half is not None and empty is not None
        self.assertLess(empty, broken)
        self.assertLess(broken, half)

    def test_no_cost(self) -> None:
        for amounts, taken in (
            ({'CUSTOM_SHAPE_HALF': 2}, [OFFERED['EIGHTH'][6]]),
            ({'CUSTOM_SHAPE_EIGHTH': 1}, [slices.WHOLE]),
            # Each of them has room alone.
            ({'CUSTOM_SHAPE_HALF': 1, 'CUSTOM_SHAPE_WHOLE': 1}, []),
        ):
            self.assertIsNone(
                card(*taken).cost(device_profile.Group(amounts), PACK)
            )
