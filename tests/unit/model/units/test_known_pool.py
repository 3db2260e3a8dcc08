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
from nova_accel.model.units import host_fit
from nova_accel.model.units import known_pool
from nova_accel.model.units import unit_choice
from unit.model import boards
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
        self.assertEqual([1, 1], free(some))
        some = pool(units('a', 2), units('b', 2), FPGA=3)
        self.assertEqual([0, 1], sorted(free(some)))
        self.assertEqual({'FPGA': 1}, some.room(wanted()))

    def test_more_is_claimed_than_is_free(self) -> None:
        some = pool(
            units('a'), units('b'), units('v', resource_class='VGPU'), FPGA=3
        )
        self.assertEqual([0, 0, 1], free(some))

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

    def test_units_that_are_given_back(self) -> None:
        some = pool(units('a', 0), units('b'), units('c', 0))
        found = some.freed(
            {'a': free_units.HeldUnits(1), 'b': free_units.HeldUnits(1)}
        )
        self.assertEqual([1, 2, 0], free(found))
        self.assertEqual({'FPGA': 3}, found.room(wanted()))
        self.assertIsNotNone(found.cost(wanted(3), PACK))
        # The pool itself never changes.
        self.assertEqual([0, 1, 0], free(some))
        self.assertIsNone(some.cost(wanted(3), PACK))

    def test_never_more_is_free_than_there_is(self) -> None:
        """It may have been read before the server got its units."""
        some = pool(units('a', 1), units('b', 2))
        self.assertEqual(
            [2, 2],
            free(
                some.freed(
                    {
                        'a': free_units.HeldUnits(2),
                        'b': free_units.HeldUnits(1),
                    }
                )
            ),
        )

    def test_what_is_claimed_stays_so_when_others_give_units_back(
        self,
    ) -> None:
        some = pool(units('a', 1), FPGA=1)
        self.assertEqual([0], free(some))
        found = some.freed({'a': free_units.HeldUnits(1)})
        self.assertEqual([1], free(found))

    def test_one_comes_and_another_leaves(self) -> None:
        some = pool(units('a', 1))
        for _again in range(3):
            after = some.after(wanted())
            assert after is not None
            self.assertEqual([0], free(after))
            self.assertIsNone(after.after(wanted()))
            some = after.freed({'a': free_units.HeldUnits(1)})
            self.assertEqual([1], free(some))

    def test_the_demand_counts_after_units_are_given_back(self) -> None:
        held = units('a', bitstream_id='b')
        some = known_pool.KnownPool([held], {}, {'b': 2.0})
        cost = some.freed({'a': free_units.HeldUnits(1)}).cost(wanted(), PACK)
        assert cost is not None
        self.assertEqual(2.0, cost.missed)

    def test_little_is_remembered(self) -> None:
        some = pool(units('a', 2))
        for amount in range(1, 1000):
            some.cost(wanted(amount), PACK)
            some.room(wanted(amount))
        self.assertLessEqual(len(some._costs), 64)
        self.assertLessEqual(len(some._room), 64)


def free(found: known_pool.KnownPool) -> list[int]:
    return [each.free for each in found.units]


class TestLinkSets(testtools.TestCase):
    """The pairs of a board of eight joined GPUs."""

    def pools(self, used: set[int]) -> dict[str, known_pool.KnownPool]:
        return {
            rp_uuid: known_pool.KnownPool(members, {}, {}, 'the host')
            for rp_uuid, members in boards.pools(used).items()
        }

    def count(self, pools: host_fit.Pools, size: int) -> int:
        """How many servers get so many GPUs that are joined."""
        pair = device_profile.Group({'PGPU': 2}, link='nvlink')
        return host_fit.count(pools, [pair] * (size // 2), 9)

    def test_a_set_is_whole_again(self) -> None:
        pools = self.pools({0, 5})
        for number, expected in ((5, [0, 1, 3]), (0, [1, 2, 4])):
            rp_uuid = f'host-pair-{number // 2}'
            pools[rp_uuid] = pools[rp_uuid].freed(
                {f'host-{number}': free_units.HeldUnits(1)}
            )
            self.assertEqual('the host', pools[rp_uuid].linked_on)
            self.assertEqual(
                expected, [self.count(pools, size) for size in (8, 4, 2)]
            )

    def test_one_of_a_pair(self) -> None:
        pool = self.pools({2, 3})['host-pair-1']
        found = pool.freed({'host-3': free_units.HeldUnits(1)})
        self.assertEqual([0, 1], free(found))
        self.assertEqual(pool.units[0].sets, found.units[0].sets)


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
    def test_what_is_claimed_leaves_room_for_fewer(self) -> None:
        self.assertEqual([1, 2, 7], free(card()))
        self.assertEqual([0, 1, 4], free(card(CUSTOM_SHAPE_HALF=1)))
        self.assertEqual([0, 0, 0], free(card(CUSTOM_SHAPE_WHOLE=1)))
        self.assertEqual(
            [0, 0, 3],
            free(card(OFFERED['EIGHTH'][0], CUSTOM_SHAPE_HALF=1)),
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

    def test_a_card_that_is_given_back_is_whole_again(self) -> None:
        for name, offered in OFFERED.items():
            for place in offered:
                some = card(place)
                found = some.freed({name: free_units.HeldUnits(1, (place,))})
                self.assertEqual([1, 2, 7], free(found))
                self.assertEqual(0, free(some)[0])
                whole = device_profile.Group({'CUSTOM_SHAPE_WHOLE': 1})
                self.assertIsNone(some.after(whole))
                self.assertIsNotNone(found.after(whole))

    def test_one_of_two_guests_gives_its_unit_back(self) -> None:
        first, second = OFFERED['EIGHTH'][0], OFFERED['HALF'][1]
        some = card(first, second)
        self.assertEqual(
            [0, 1, 4],
            free(some.freed({'EIGHTH': free_units.HeldUnits(1, (first,))})),
        )
        self.assertEqual(
            [0, 1, 6],
            free(some.freed({'HALF': free_units.HeldUnits(1, (second,))})),
        )

    def test_several_units_are_given_back(self) -> None:
        kept, *given = OFFERED['EIGHTH'][:3]
        found = card(kept, *given).freed(
            {'EIGHTH': free_units.HeldUnits(2, tuple(given))}
        )
        self.assertEqual(free(card(kept)), free(found))

    def test_what_is_claimed_stays_so_when_others_give_units_back(
        self,
    ) -> None:
        first = OFFERED['EIGHTH'][0]
        some = card(first, CUSTOM_SHAPE_HALF=1)
        found = some.freed({'EIGHTH': free_units.HeldUnits(1, (first,))})
        self.assertEqual(free(card(CUSTOM_SHAPE_HALF=1)), free(found))
        self.assertEqual([0, 1, 4], free(found))

    def test_who_has_come_stays_when_others_give_units_back(self) -> None:
        first = OFFERED['EIGHTH'][0]
        after = card(first).after(
            device_profile.Group({'CUSTOM_SHAPE_HALF': 1})
        )
        assert after is not None
        found = after.freed({'EIGHTH': free_units.HeldUnits(1, (first,))})
        self.assertEqual([0, 1, 4], free(found))

    def test_what_was_read_before_the_server_got_its_unit(self) -> None:
        first = OFFERED['EIGHTH'][0]
        found = card().freed({'EIGHTH': free_units.HeldUnits(1, (first,))})
        self.assertEqual([1, 2, 7], free(found))
