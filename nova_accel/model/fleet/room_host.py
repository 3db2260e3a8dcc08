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


"""A host that could have room for more servers if some of its guests left."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

from nova_accel.model.fleet import room_guest
from nova_accel.model.units import host_fit

#: All choices of leaving guests are compared on a host that has so many. One
#: choice is found on a host with more. No guest of it could stay, but another
#: choice may be better.
_COMPARED = 10


class Gain(NamedTuple):
    """Guests that leave a host so that more servers fit there.

    Guests at a price below ``least`` are not enough.
    """

    least: float
    leaving: tuple[room_guest.Guest, ...]


@dataclasses.dataclass(eq=False)
class RoomHost:
    """A host, with those of its guests that may move. It never changes.

    :ivar wanted: the groups of each of the servers that need room
    :ivar check: called before each lasting step
    :ivar siblings: the same host with fewer guests, by those that are left
    """

    name: str
    pools: host_fit.Pools
    guests: tuple[room_guest.Guest, ...]
    wanted: room_guest.Groups
    servers: int
    check: Callable[[], None]
    siblings: dict[tuple[room_guest.Guest, ...], 'RoomHost'] = (
        dataclasses.field(default_factory=dict)
    )

    @functools.cached_property
    def fits(self) -> int:
        """How many of the servers could start here."""
        self.check()
        return host_fit.count(self.pools, self.wanted, self.servers)

    @functools.cached_property
    def free(self) -> collections.Counter[str]:
        """Resource class -> free units."""
        found: collections.Counter[str] = collections.Counter()
        for pool in self.pools.values():
            for units in pool.units:
                found[units.resource_class] += units.free
        return found

    @property
    def has_card(self) -> bool:
        """Whether it has cards of many shapes: amounts do not add up then."""
        return any(pool.card is not None for pool in self.pools.values())

    def without(self, leaving: Collection[room_guest.Guest]) -> 'RoomHost':
        """The host when some of its guests have left."""
        left = tuple(each for each in self.guests if each not in leaving)
        found = self.siblings.get(left)
        if found is None:
            pools = dict(self.pools)
            for guest in leaving:
                # A provider that is newer than the pools is not here.
                for rp_uuid in guest.held.keys() & pools.keys():
                    held = guest.held[rp_uuid]
                    pools[rp_uuid] = pools[rp_uuid].freed(held)
            found = dataclasses.replace(self, pools=pools, guests=left)
            self.siblings[left] = found
        return found

    def with_guest(self, guest: room_guest.Guest) -> 'RoomHost | None':
        """The host when a server has come, None if it has no room for it."""
        if not guest.amounts <= self.free:
            return None
        pools = host_fit.after(self.pools, guest.groups)
        if pools is None:
            return None
        return dataclasses.replace(self, pools=pools, siblings={})

    @functools.cached_property
    def gains(self) -> Mapping[int, Gain]:
        """How many more servers -> the cheapest guests that have to leave."""
        most = self.without(self.guests).fits - self.fits
        if len(self.guests) > _COMPARED:
            return {more: self._found(more) for more in range(1, most + 1)}
        gains: dict[int, Gain] = {}
        for leaving in _choices(self.guests):
            if len(gains) >= most:
                break
            if len(leaving) >= self._least_leaving(1, leaving):
                gain = self.without(leaving).fits - self.fits
                for more in range(len(gains) + 1, gain + 1):
                    gains[more] = Gain(total_price(leaving), leaving)
        return gains

    def _found(self, more: int) -> Gain:
        """Guests of whom all have to leave; those with most trouble stay."""
        leaving = self.guests
        for guest in sorted(self.guests, key=weight, reverse=True):
            fewer = tuple(each for each in leaving if each is not guest)
            if self.without(fewer).fits - self.fits >= more:
                leaving = fewer
        return Gain(
            self._least_leaving(more, self.guests) * room_guest.MOVE, leaving
        )

    def _least_leaving(
        self, more: int, guests: Iterable[room_guest.Guest]
    ) -> float:
        """How many of the guests have to leave at least, by amounts.

        :param more: how many more servers have to fit
        """
        least: float = 1
        if self.has_card:
            return least
        for name, amount in room_guest.amounts_of(self.wanted).items():
            missing = (self.fits + more) * amount - self.free[name]
            given = sorted(
                (guest.amounts[name] for guest in guests), reverse=True
            )
            enough = (
                number
                for number, units in enumerate(itertools.accumulate(given), 1)
                if units >= missing
            )
            if missing > 0:
                least = max(least, next(enough, math.inf))
        return least


def _choices(
    guests: Sequence[room_guest.Guest],
) -> list[tuple[room_guest.Guest, ...]]:
    """All choices of some guests, the cheapest ones first."""
    return sorted(
        (
            leaving
            for number in range(1, len(guests) + 1)
            for leaving in itertools.combinations(guests, number)
        ),
        key=lambda leaving: (
            total_price(leaving),
            sum(guest.amounts.total() for guest in leaving),
        ),
    )


def weight(guest: room_guest.Guest) -> tuple[int, int]:
    return guest.trouble, guest.amounts.total()


def total_price(guests: Iterable[room_guest.Guest]) -> int:
    return sum(guest.price for guest in guests)
