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


"""The fewest moves of servers after which others find room.

A server moves once, to another host, and only while that has room for it. So
the moves can be made in their order. More moves are always dearer than fewer
ones; of as many, those with less trouble are cheaper.
"""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import math
import sys
from typing import NamedTuple

from nova_accel.model.fleet import room_guest
from nova_accel.model.fleet import room_host
from nova_accel.model.units import host_fit

_Hosts = Mapping[str, room_host.RoomHost]


class RoomMove(NamedTuple):
    """The move of a server, and the units that it is expected to get.

    ``units`` has device uuid -> amount.
    """

    server_uuid: str
    source: str
    target: str
    units: Mapping[str, int]


class RoomPlan(NamedTuple):
    """The moves, in their order; None if no plan was found.

    ``is_proven`` says that no plan is cheaper, or that there is none.
    """

    moves: tuple[RoomMove, ...] | None
    is_proven: bool


def plan(
    hosts: Mapping[str, host_fit.Pools],
    guests: Iterable[room_guest.Guest],
    wanted: room_guest.Groups,
    servers: int,
    is_over: Callable[[], bool] = lambda: False,
) -> RoomPlan:
    """The cheapest moves after which so many servers could start.

    A first plan makes room on one host after the other. A cheaper one is then
    sought among all plans, until the time is over.

    :param hosts: hostname -> the pools of all its providers
    :param guests: those that may move
    :param wanted: the groups of each server, as those of guests
    :param is_over: whether to stop the search
    """

    def check() -> None:
        if is_over():
            raise _OverError

    start = _with_guests(hosts, guests, wanted, servers, check)
    if not _is_enough(start.values(), wanted, servers):
        return RoomPlan(None, is_proven=True)
    search = _Search(servers, check)
    found, is_proven = None, True
    try:
        found = search.host_by_host(start)
        limit = math.inf if found is None else _price(found)
        found = search.cheapest(start, limit) or found
    except _OverError:
        is_proven = False
    return RoomPlan(
        None if found is None else tuple(step.move for step in found),
        is_proven,
    )


def count_if_moved(
    hosts: Mapping[str, host_fit.Pools],
    guests: Sequence[room_guest.Guest],
    wanted: room_guest.Groups,
) -> int:
    """How many servers could start at least, if all guests moved at once.

    The guests are packed anew, the largest ones first, and first on hosts that
    could serve none of the wanted servers.

    :param hosts: as for :func:`plan`
    """
    now = _with_guests(hosts, guests, wanted, sys.maxsize).values()
    fit_now = sum(host.fits for host in now)
    then = [host.without(host.guests) for host in now]
    then.sort(key=lambda host: (host.fits > 0, host.name))
    full: set[tuple[str, room_guest.Groups]] = set()
    for guest in sorted(guests, key=room_host.weight, reverse=True):
        for number, host in enumerate(then):
            key = host.name, tuple(guest.groups)
            if key not in full:
                packed = host.with_guest(guest)
                if packed is not None:
                    then[number] = packed
                    break
                full.add(key)
        else:
            return fit_now
    return max(fit_now, sum(host.fits for host in then))


def _with_guests(
    hosts: Mapping[str, host_fit.Pools],
    guests: Iterable[room_guest.Guest],
    wanted: room_guest.Groups,
    servers: int,
    check: Callable[[], None] = lambda: None,
) -> _Hosts:
    of_hosts: dict[str, list[room_guest.Guest]] = {}
    for guest in guests:
        of_hosts.setdefault(guest.hostname, []).append(guest)
    return {
        name: room_host.RoomHost(
            name, pools, tuple(of_hosts.get(name, ())), wanted, servers, check
        )
        for name, pools in hosts.items()
    }


class _Step(NamedTuple):
    """A move, its price, and all hosts after it."""

    move: RoomMove
    price: int
    hosts: _Hosts


class _OverError(Exception):
    """The time for the search is over."""


class _Search:
    """The search for plans.

    :param servers: how many need room
    :param check: raises an error if the time is over
    """

    def __init__(self, servers: int, check: Callable[[], None]) -> None:
        self._servers = servers
        self._check = check
        # The lowest price that was too high.
        self._next = math.inf
        # The moves that were made, in any order -> at which price.
        self._seen: dict[frozenset[tuple[room_guest.Guest, str]], float] = {}

    def host_by_host(self, hosts: _Hosts) -> list[_Step] | None:
        """The steps that make room on one host after the other."""
        steps: list[_Step] = []
        while missing := self._missing(hosts):
            for leaving in _by_price(hosts):
                found = self._leave(hosts, leaving)
                if found and self._missing(found[-1].hosts) < missing:
                    break
            else:
                return None
            steps += found
            hosts = found[-1].hosts
        return steps

    def cheapest(self, hosts: _Hosts, limit: float) -> list[_Step] | None:
        """The cheapest steps of all, None if they do not cost below a limit.

        It is iterative deepening A*, by the price that is left at least.

        :raises _OverError: the time is over.
        """
        bound = self._least(hosts)
        while bound < limit:
            self._next = math.inf
            self._seen.clear()
            found = self._deepen(hosts, frozenset(), 0, bound)
            if found is not None:
                return found
            bound = self._next
        return None

    def _deepen(
        self,
        hosts: _Hosts,
        moved: frozenset[tuple[room_guest.Guest, str]],
        spent: int,
        bound: float,
    ) -> list[_Step] | None:
        if not self._missing(hosts):
            return []
        if self._seen.get(moved, math.inf) <= spent:
            return None
        self._seen[moved] = spent
        for host in hosts.values():
            for guest in host.guests:
                left = {**hosts, host.name: host.without([guest])}
                # The target can only have less room than before.
                if not self._is_within(left, spent + guest.price, bound):
                    continue
                for step in self._steps_of(guest, hosts):
                    if self._is_within(step.hosts, spent + step.price, bound):
                        rest = self._deepen(
                            step.hosts,
                            moved | {(guest, step.move.target)},
                            spent + step.price,
                            bound,
                        )
                        if rest is not None:
                            return [step, *rest]
        return None

    def _is_within(self, hosts: _Hosts, spent: int, bound: float) -> bool:
        price = spent + self._least(hosts)
        if price > bound:
            self._next = min(self._next, price)
        return price <= bound

    def _leave(
        self, hosts: _Hosts, leaving: Iterable[room_guest.Guest]
    ) -> list[_Step] | None:
        """The steps of guests that leave, None if one finds no room.

        Each goes where least is free, and first where it costs no room for
        the servers that need it.
        """
        steps = []
        for guest in sorted(leaving, key=room_host.weight, reverse=True):
            best, lost = None, math.inf
            for step in self._steps_of(guest, hosts):
                target = step.move.target
                here = hosts[target].fits - step.hosts[target].fits
                if here < lost:
                    best, lost = step, here
                if not lost:
                    break
            if best is None:
                return None
            steps.append(best)
            hosts = best.hosts
        return steps

    def _steps_of(
        self, guest: room_guest.Guest, hosts: _Hosts
    ) -> Iterator[_Step]:
        """The steps of a guest to each host, where least is free first."""
        source = hosts[guest.hostname].without([guest])
        for host in sorted(
            hosts.values(), key=lambda host: (host.free.total(), host.name)
        ):
            if host.name == guest.hostname:
                continue
            self._check()
            target = host.with_guest(guest)
            if target is not None:
                yield _Step(
                    RoomMove(
                        guest.uuid,
                        source.name,
                        target.name,
                        _given(host.pools, target.pools, guest.amounts),
                    ),
                    guest.price,
                    {**hosts, source.name: source, target.name: target},
                )

    def _missing(self, hosts: _Hosts) -> int:
        """How many servers find no room."""
        return max(
            0, self._servers - sum(host.fits for host in hosts.values())
        )

    def _least(self, hosts: _Hosts) -> float:
        """A price that no plan is below, infinite if there is none.

        It is right if guests that leave a host need no room.
        """
        self._check()
        missing = self._missing(hosts)
        least = [0.0] + [math.inf] * missing
        for host in hosts.values() if missing else ():
            before = list(least)
            for more, gain in host.gains.items():
                for fitting, price in enumerate(before[:-1]):
                    then = min(fitting + more, missing)
                    least[then] = min(least[then], price + gain.least)
        return least[-1]


def _is_enough(
    hosts: Collection[room_host.RoomHost],
    wanted: room_guest.Groups,
    servers: int,
) -> bool:
    """Whether there are enough free units, wherever. Moves free none.

    The units of cards of many shapes have no amounts that add up.
    """
    return any(host.has_card for host in hosts) or all(
        sum(host.free[name] for host in hosts) >= servers * amount
        for name, amount in room_guest.amounts_of(wanted).items()
    )


def _by_price(hosts: _Hosts) -> list[tuple[room_guest.Guest, ...]]:
    """The guests that may leave a host, the cheapest for each server first."""
    return [
        gain.leaving
        for _price, _name, gain in sorted(
            (
                (room_host.total_price(gain.leaving) / more, host.name, gain)
                for host in hosts.values()
                for more, gain in host.gains.items()
            ),
            key=lambda each: each[:2],
        )
    ]


def _price(steps: Iterable[_Step]) -> int:
    return sum(step.price for step in steps)


def _given(
    before: host_fit.Pools, after: host_fit.Pools, amounts: Mapping[str, int]
) -> dict[str, int]:
    """Device uuid -> how many of its units a server has got.

    :param amounts: resource class -> how many units it needs
    """
    given: collections.Counter[str] = collections.Counter()
    for rp_uuid, pool in before.items():
        for was, now in zip(pool.units, after[rp_uuid].units, strict=True):
            # A card of many shapes may have less room for others, too.
            units = min(
                was.free - now.free, amounts.get(was.resource_class, 0)
            )
            if units > 0:
                given[was.sets[-1]] += units
    return dict(given)
