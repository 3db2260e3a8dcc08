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

from collections.abc import Callable
from collections.abc import Collection
import dataclasses
import itertools
from typing import Any

import testtools

from nova_accel.model.fleet import room_guest
from nova_accel.model.fleet import room_host
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import host_fit
from unit.model.fleet import room_boards

MOVE = room_guest.MOVE
WHOLE, HALF, EIGHTH = (
    room_boards.WHOLE,
    room_boards.HALF,
    room_boards.EIGHTH,
)


class _OverError(Exception):
    """The time is over."""


def host(
    pools: host_fit.Pools,
    guests: list[room_guest.Guest],
    wanted: room_guest.Groups,
    servers: int = 1,
    check: Callable[[], None] = lambda: None,
) -> room_host.RoomHost:
    return room_host.RoomHost(
        'host', pools, tuple(guests), wanted, servers, check
    )


def board(
    guests: list[room_guest.Guest],
    wanted: int = 8,
    servers: int = 1,
    stay: Collection[int] = (),
    **fields: Any,
) -> room_host.RoomHost:
    """A host with a board of GPUs.

    :param stay: those of servers that do not move
    """
    return host(
        room_boards.pools('host', {*stay}.union(*map(numbers, guests))),
        guests,
        room_boards.groups(wanted),
        servers,
        **fields,
    )


def guest(*gpus: int, trouble: int = 0) -> room_guest.Guest:
    """A server that has some GPUs of the board, and is named by them."""
    return room_boards.guest(''.join(map(str, gpus)), 'host', gpus, trouble)


def numbers(found: room_guest.Guest) -> set[int]:
    return set(map(int, found.uuid))


def leaving(found: room_host.RoomHost) -> dict[int, set[str]]:
    """How many more servers -> those that have to leave."""
    return {
        more: {each.uuid for each in gain.leaving}
        for more, gain in found.gains.items()
    }


class TestFits(testtools.TestCase):
    def test_servers(self) -> None:
        for expected, wanted, used in (
            (1, 8, ()),
            (0, 8, {3}),
            (1, 4, {3}),
            (2, 4, ()),
            # Two pairs are left, one in each half.
            (0, 4, {0, 7}),
            (2, 2, {0, 7}),
        ):
            self.assertEqual(expected, board([], wanted, 9, used).fits)

    def test_no_more_than_need_room(self) -> None:
        self.assertEqual(3, board([], 1, 3).fits)

    def test_the_time_is_over(self) -> None:
        def check() -> None:
            raise _OverError

        found = board([guest(0)], check=check)
        self.assertRaises(_OverError, lambda: found.fits)
        self.assertRaises(_OverError, lambda: found.gains)


class TestFree(testtools.TestCase):
    def test_of_all_pools(self) -> None:
        self.assertEqual({'PGPU': 6}, board([guest(0)], stay={5}).free)

    def test_of_each_class(self) -> None:
        found = host(
            {
                **room_boards.pools('host', {0}),
                **room_boards.function_pools('host', (2, 4), (1, 1)),
            },
            [],
            room_boards.groups(8),
        )
        self.assertEqual({'PGPU': 7, 'CUSTOM_QAT': 3}, found.free)


class TestWithout(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.guests = [guest(0), guest(2, 3), guest(5)]
        self.host = board(self.guests)

    def test_what_a_server_gives_back(self) -> None:
        first, second, third = self.guests
        left = self.host.without([second])
        self.assertEqual((first, third), left.guests)
        self.assertEqual({'PGPU': 6}, left.free)
        self.assertEqual(0, left.fits)
        self.assertEqual(1, self.host.without(self.guests).fits)

    def test_the_host_is_as_before(self) -> None:
        self.host.without(self.guests)
        self.assertEqual(tuple(self.guests), self.host.guests)
        self.assertEqual({'PGPU': 4}, self.host.free)
        self.assertEqual(0, self.host.fits)

    def test_the_same_host_for_the_same_guests(self) -> None:
        first, second, third = self.guests
        found = self.host.without([first, third])
        self.assertIs(found, self.host.without([third, first]))
        self.assertIs(found, self.host.without([first]).without([third]))
        self.assertIs(found, self.host.without([third]).without([first]))
        self.assertIsNot(found, self.host.without([first, second]))

    def test_a_server_that_gives_nothing_back(self) -> None:
        """No other server could have its unit."""
        broken = room_guest.Guest('broken', 'host', room_boards.groups(1), {})
        found = host(
            room_boards.pools('host', {0}), [broken], room_boards.groups(8)
        )
        left = found.without([broken])
        self.assertEqual((), left.guests)
        self.assertEqual({'PGPU': 7}, left.free)
        self.assertEqual({}, found.gains)

    def test_a_provider_that_is_newer_than_the_pools(self) -> None:
        newer = guest(0)
        held = {**newer.held, 'newer': {'unit': free_units.HeldUnits(1)}}
        newer = dataclasses.replace(newer, held=held)
        left = host(
            room_boards.pools('host', {0}), [newer], room_boards.groups(8)
        ).without([newer])
        self.assertEqual({'PGPU': 8}, left.free)
        self.assertEqual(1, left.fits)


class TestWithGuest(testtools.TestCase):
    def test_it_comes(self) -> None:
        before = board([guest(0)], wanted=4, servers=9)
        after = before.with_guest(room_boards.guest('new', 'other', {0, 1}))
        assert after is not None
        self.assertEqual({'PGPU': 5}, after.free)
        # It takes the free pair beside the one that is broken already.
        self.assertEqual(1, after.fits)
        self.assertEqual(before.guests, after.guests)

    def test_the_host_is_as_before(self) -> None:
        before = board([guest(0)])
        before.with_guest(room_boards.guest('new', 'other', {0}))
        self.assertEqual({'PGPU': 7}, before.free)
        self.assertEqual(1, before.without(before.guests).fits)

    def test_no_room(self) -> None:
        for used in (set(range(7)), {0, 2, 4, 6}):
            self.assertIsNone(
                board([], stay=used).with_guest(
                    room_boards.guest('new', 'other', {0, 1})
                )
            )

    def test_who_comes_stays_when_others_leave(self) -> None:
        first = guest(0)
        before = board([first])
        self.assertEqual({'PGPU': 8}, before.without([first]).free)
        after = before.with_guest(room_boards.guest('new', 'other', {0, 1}))
        assert after is not None
        self.assertEqual({'PGPU': 6}, after.without([first]).free)
        self.assertEqual({'PGPU': 8}, before.without([first]).free)


class TestGains(testtools.TestCase):
    def test_no_one_has_to_leave(self) -> None:
        self.assertEqual({}, board([guest(0)], wanted=4).gains)

    def test_no_one_can_make_room(self) -> None:
        self.assertEqual({}, board([guest(0)], stay={1}).gains)
        self.assertEqual({}, board([], stay={1}).gains)

    def test_all_have_to_leave(self) -> None:
        found = board([guest(0), guest(4, 5, trouble=2)])
        self.assertEqual({1: {'0', '45'}}, leaving(found))
        self.assertEqual(2 * MOVE + 2, found.gains[1].least)

    def test_the_fewest(self) -> None:
        self.assertEqual(
            {1: {'4567'}, 2: {'4567', '0', '1'}},
            leaving(
                board([guest(0), guest(1), guest(4, 5, 6, 7)], 4, servers=2)
            ),
        )

    def test_fewer_come_before_less_trouble(self) -> None:
        found = board([guest(0), guest(1), guest(4, trouble=9)], 4)
        self.assertEqual({1: {'4'}}, leaving(found))
        self.assertEqual(MOVE + 9, found.gains[1].least)

    def test_the_least_trouble(self) -> None:
        self.assertEqual(
            {1: {'4'}}, leaving(board([guest(0, trouble=2), guest(4)], 4))
        )

    def test_of_equals_the_smallest(self) -> None:
        self.assertEqual(
            {1: {'4'}}, leaving(board([guest(0, 1), guest(4)], 4))
        )

    def test_one_makes_room_for_several(self) -> None:
        self.assertEqual(
            {1: {'34'}, 2: {'34'}},
            leaving(board([guest(3, 4)], 4, servers=2)),
        )

    def test_no_more_than_need_room(self) -> None:
        guests = [guest(0), guest(1), guest(4)]
        self.assertEqual({1: {'4'}}, leaving(board(guests, 4, servers=1)))
        self.assertEqual({1, 2}, {*board(guests, 4, servers=9).gains})

    def test_beside_a_server_that_fits_already(self) -> None:
        found = board([guest(0), guest(1)], 4, servers=2)
        self.assertEqual(1, found.fits)
        self.assertEqual({1: {'0', '1'}}, leaving(found))

    def test_enough_units_that_are_not_joined(self) -> None:
        """The smallest choice by amounts makes no room."""
        found = board([guest(0), guest(4), guest(6)], 4, stay={1})
        self.assertEqual({1: {'4', '6'}}, leaving(found))

    def test_any_choice(self) -> None:
        for guests in (
            [guest(0), guest(2, 3), guest(5, trouble=3), guest(6, 7)],
            [guest(0, trouble=1), guest(1), guest(2, 4), guest(7)],
            [guest(0, 1), guest(2, 3), guest(4, 5), guest(6, 7)],
        ):
            for wanted in (1, 2, 4, 8):
                found = board(guests, wanted, servers=9)
                self.assertEqual(
                    cheapest(found),
                    {more: gain.least for more, gain in found.gains.items()},
                )
                check(self, found)


class TestManyGuests(testtools.TestCase):
    """More of them than all choices are compared of."""

    def functions(
        self,
        guests: list[room_guest.Guest],
        wanted: device_profile.Group,
        *nodes: tuple[int, int],
        servers: int = 1,
    ) -> room_host.RoomHost:
        return host(
            room_boards.function_pools('host', *nodes),
            guests,
            (wanted,),
            servers,
        )

    def test_none_too_many(self) -> None:
        guests = [
            room_boards.function_guest(str(number), 'host', 1)
            for number in range(12)
        ]
        found = self.functions(
            guests, room_boards.functions(4), (1, 13), servers=3
        )
        self.assertEqual(
            {1: 3, 2: 7, 3: 11},
            {more: len(gain.leaving) for more, gain in found.gains.items()},
        )
        self.assertEqual(
            {1: 3 * MOVE, 2: 7 * MOVE, 3: 11 * MOVE},
            {more: gain.least for more, gain in found.gains.items()},
        )

    def test_those_with_most_trouble_stay(self) -> None:
        guests = [
            room_boards.function_guest(
                str(number), 'host', 1, trouble=number % 3
            )
            for number in range(12)
        ]
        found = self.functions(guests, room_boards.functions(4), (0, 12))
        self.assertEqual({1: {'0', '3', '6', '9'}}, leaving(found))

    def test_too_few_units_are_given_back(self) -> None:
        guests = [
            room_boards.function_guest(str(number), 'host', 1)
            for number in range(12)
        ]
        found = self.functions(guests, room_boards.functions(13), (0, 14))
        self.assertEqual({}, found.gains)

    def test_on_one_numa_node(self) -> None:
        """By amounts fewer would be enough, of any node."""
        guests = [
            room_boards.function_guest(
                str(number), 'host', 1, number % 2, trouble=number % 2
            )
            for number in range(12)
        ]
        found = self.functions(
            guests,
            room_boards.functions(4, is_on_one_numa_node=True),
            (0, 6),
            (2, 8),
        )
        gain = found.gains[1]
        self.assertEqual(4 * MOVE, room_host.total_price(gain.leaving))
        self.assertEqual(2 * MOVE, gain.least)
        check(self, found)

    def test_never_above_the_real_least(self) -> None:
        for wanted, servers in ((3, 4), (9, 1)):
            guests = [
                room_boards.function_guest(
                    str(number),
                    'host',
                    1 + number % 3,
                    number % 2,
                    trouble=number % 4,
                )
                for number in range(11)
            ]
            found = self.functions(
                guests,
                room_boards.functions(wanted, is_on_one_numa_node=True),
                (1, 14),
                (2, 12),
                servers=servers,
            )
            real = cheapest(found)
            self.assertEqual(real.keys(), found.gains.keys())
            for more, gain in found.gains.items():
                self.assertLessEqual(gain.least, real[more])
                self.assertLessEqual(
                    real[more], room_host.total_price(gain.leaving)
                )
            check(self, found)


def cheapest(found: room_host.RoomHost) -> dict[int, int]:
    """How many more servers -> the least price, of all choices."""
    prices: dict[int, int] = {}
    for number in range(1, len(found.guests) + 1):
        for choice in itertools.combinations(found.guests, number):
            price = room_host.total_price(choice)
            gain = found.without(choice).fits - found.fits
            for more in range(1, gain + 1):
                prices[more] = min(price, prices.get(more, price))
    return prices


def check(test: testtools.TestCase, found: room_host.RoomHost) -> None:
    """Those who leave make the room, and none of them leaves in vain."""
    for more, gain in found.gains.items():
        test.assertGreaterEqual(
            found.without(gain.leaving).fits - found.fits, more
        )
        for stays in gain.leaving:
            fewer = [each for each in gain.leaving if each is not stays]
            test.assertLess(found.without(fewer).fits - found.fits, more)


class TestCards(testtools.TestCase):
    """Cards of many shapes."""

    def host(
        self,
        *cards: list[tuple[str, int]],
        wanted: str = WHOLE,
        servers: int = 1,
    ) -> room_host.RoomHost:
        """A host with cards, each with the class and place of its guests."""
        return host(
            room_boards.card_pools(
                'host',
                *(
                    [room_boards.OFFERED[name][place] for name, place in taken]
                    for taken in cards
                ),
            ),
            [
                room_boards.card_guest(
                    f'{card}-{name}-{place}', 'host', name, place, card
                )
                for card, taken in enumerate(cards)
                for name, place in taken
            ],
            (device_profile.Group({wanted: 1}),),
            servers,
        )

    def test_has_card(self) -> None:
        self.assertTrue(self.host([]).has_card)
        self.assertFalse(board([]).has_card)

    def test_the_one_guest_of_a_whole_card_leaves(self) -> None:
        found = self.host([(EIGHTH, 2)])
        self.assertEqual(0, found.fits)
        self.assertEqual({WHOLE: 0, HALF: 1, EIGHTH: 6}, found.free)
        self.assertEqual({1: room_host.Gain(MOVE, found.guests)}, found.gains)
        left = found.without(found.guests)
        self.assertEqual({WHOLE: 1, HALF: 2, EIGHTH: 7}, left.free)

    def test_the_card_with_fewest_guests(self) -> None:
        found = self.host([(EIGHTH, 0), (EIGHTH, 1)], [(HALF, 0)], servers=2)
        self.assertEqual(
            {
                1: {f'1-{HALF}-0'},
                2: {f'1-{HALF}-0', f'0-{EIGHTH}-0', f'0-{EIGHTH}-1'},
            },
            leaving(found),
        )
        check(self, found)

    def test_a_half(self) -> None:
        found = self.host(
            [(HALF, 0), (EIGHTH, 4), (EIGHTH, 6)], wanted=HALF, servers=2
        )
        self.assertEqual(0, found.fits)
        self.assertEqual(
            {
                1: {f'0-{HALF}-0'},
                2: {f'0-{HALF}-0', f'0-{EIGHTH}-4', f'0-{EIGHTH}-6'},
            },
            leaving(found),
        )

    def test_many_guests(self) -> None:
        """Amounts do not add up: one that leaves may be enough."""
        found = self.host(
            [(EIGHTH, place) for place in range(7)],
            [(EIGHTH, place) for place in range(3)],
            [(EIGHTH, 5)],
        )
        self.assertEqual({1: {f'2-{EIGHTH}-5'}}, leaving(found))
        self.assertEqual(MOVE, found.gains[1].least)
        check(self, found)

    def test_it_comes(self) -> None:
        """It goes to the card that is no whole one any more."""
        found = self.host([], [(EIGHTH, 0)], servers=2)
        self.assertEqual(1, found.fits)
        new = room_boards.card_guest('new', 'other', EIGHTH)
        after = found.with_guest(new)
        assert after is not None
        self.assertEqual(1, after.fits)
        self.assertEqual(7 + 5, after.free[EIGHTH])

    def test_who_comes_stays_when_others_leave(self) -> None:
        found = self.host([(EIGHTH, 0)])
        after = found.with_guest(room_boards.card_guest('new', 'other', HALF))
        assert after is not None
        left = after.without(after.guests)
        self.assertEqual({WHOLE: 0, HALF: 1, EIGHTH: 4}, left.free)
        self.assertEqual({}, after.gains)

    def test_no_room(self) -> None:
        new = room_boards.card_guest('new', 'other', HALF)
        for taken in (
            [(WHOLE, 0)],
            [(HALF, 0), (HALF, 1)],
            [(EIGHTH, 0), (EIGHTH, 5)],
        ):
            self.assertIsNone(self.host(taken).with_guest(new))


class TestWeight(testtools.TestCase):
    def test_trouble_comes_before_size(self) -> None:
        small, large, easy = (
            guest(0, trouble=1),
            guest(0, 1, trouble=1),
            guest(0, 1, 2, 3),
        )
        self.assertEqual(
            [easy, small, large],
            sorted([large, small, easy], key=room_host.weight),
        )


class TestTotalPrice(testtools.TestCase):
    def test_of_all(self) -> None:
        self.assertEqual(0, room_host.total_price([]))
        self.assertEqual(
            2 * MOVE + 3,
            room_host.total_price([guest(0, trouble=1), guest(1, trouble=2)]),
        )
