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

"""Whether one host could serve several groups, by its free units.

It tries no second way after the first, so it may deny what could be served.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_links
from nova_accel.model.units import known_pool
from nova_accel.model.units import unit_choice

#: (Provider, group) -> resource class -> units that suit the group.
Room = Callable[[str, device_profile.Group], Mapping[str, int]]

#: Provider -> its pool, of one host.
Pools = Mapping[str, known_pool.KnownPool]


class Request(NamedTuple):
    """The request for a server.

    :ivar is_isolated: whether each group needs a provider of its own
    :ivar only: the one host that may serve it, None for any
    :ivar without: the hosts that may not
    """

    groups: Sequence[device_profile.Group]
    is_isolated: bool = False
    only: str | None = None
    without: Collection[str] = ()

    def may_use(self, hostname: str) -> bool:
        return self.only in (None, hostname) and hostname not in self.without


#: Groups -> the hosts that may serve them, with their pools.
Hosts = Callable[[Sequence[device_profile.Group]], Iterable[tuple[str, Pools]]]


@dataclasses.dataclass
class Fit:
    """The providers of a host, of which groups take units.

    :ivar is_isolated: whether each group needs a provider of its own
    :ivar chosen: the provider of each group, after :meth:`serves` has said yes
    """

    rp_uuids: Collection[str]
    room: Room
    is_isolated: bool
    chosen: list[tuple[str, device_profile.Group]] = dataclasses.field(
        default_factory=list
    )
    _taken: dict[tuple[str, str], int] = dataclasses.field(
        default_factory=dict
    )
    _used: set[str] = dataclasses.field(default_factory=set)

    def serves(
        self,
        groups: Sequence[device_profile.Group],
        links: Callable[[], host_links.HostLinks],
    ) -> bool:
        """Whether all groups find providers; joined ones choose first."""
        of_links: dict[str, list[device_profile.Group]] = {}
        others = []
        for group in groups:
            if group.link is None:
                others.append(group)
            else:
                of_links.setdefault(group.link, []).append(group)
        return all(
            self._join(link, members, links())
            for link, members in of_links.items()
        ) and self._place(others, self.rp_uuids)

    def _join(
        self,
        link: str,
        groups: Sequence[device_profile.Group],
        links: host_links.HostLinks,
    ) -> bool:
        """Place the groups within one set that can join them."""
        size = link_division.amount(groups)
        before = dict(self._taken), set(self._used), list(self.chosen)
        for place in links.places(link, size):
            if self._place(groups, place.rp_uuids):
                return True
            self._taken, self._used = dict(before[0]), set(before[1])
            self.chosen = list(before[2])
        return False

    def _place(
        self,
        groups: Iterable[device_profile.Group],
        rp_uuids: Collection[str],
    ) -> bool:
        """Give each group the first provider that has room for it."""
        for group in groups:
            for rp_uuid in tuple(rp_uuids):
                if self._take(group, rp_uuid):
                    break
            else:
                return False
        return True

    def _take(self, group: device_profile.Group, rp_uuid: str) -> bool:
        if rp_uuid in self._used:
            return False
        room = self.room(rp_uuid, group)
        asked = group.resources.items()
        if any(
            room[name] - self._taken.get((rp_uuid, name), 0) < amount
            for name, amount in asked
        ):
            return False
        if self.is_isolated:
            self._used.add(rp_uuid)
        for name, amount in asked:
            key = rp_uuid, name
            self._taken[key] = self._taken.get(key, 0) + amount
        self.chosen.append((rp_uuid, group))
        return True


def sort(
    groups: Iterable[device_profile.Group],
) -> Sequence[device_profile.Group]:
    """The groups; those that ask for most choose first."""
    return sorted(
        groups,
        key=lambda group: (
            len(group.required),
            sum(group.resources.values()),
        ),
        reverse=True,
    )


def count(
    pools: Pools,
    groups: Sequence[device_profile.Group],
    most: int,
    before: Iterable[Sequence[device_profile.Group]] = (),
) -> int:
    """How many servers a host can serve, one after the other.

    Each takes what nova-scheduler and the host would choose. So there may be
    more by another choice, and never fewer.

    :param pools: of the host, by their providers
    :param most: where counting ends
    :param before: of each of these groups as many servers come first as can be
    """
    for others in before:
        pools = _exhausted(pools, others)
    if len(groups) == 1 and _takes_any_units(groups[0], pools):
        [group] = groups
        in_all = sum(_servers(pool, group) for pool in pools.values())
        return min(in_all, most)
    found = 0
    while found < most:
        left = after(pools, groups)
        if left is None:
            break
        found, pools = found + 1, left
    return found


def _servers(pool: known_pool.KnownPool, group: device_profile.Group) -> int:
    """How many servers a pool can serve, if it does not matter how."""
    room = pool.room(group)
    return min(
        room[name] // amount for name, amount in group.resources.items()
    )


def _exhausted(pools: Pools, groups: Sequence[device_profile.Group]) -> Pools:
    """The pools when as many servers have got all groups as can be."""
    if len(groups) == 1 and _takes_any_units(groups[0], pools):
        [group] = groups
        return {
            rp_uuid: _after_servers(pool, group)
            for rp_uuid, pool in pools.items()
        }
    left: Pools | None = pools
    while left is not None:
        pools, left = left, after(left, groups)
    return pools


def _after_servers(
    pool: known_pool.KnownPool, group: device_profile.Group
) -> known_pool.KnownPool:
    """A pool when it has served as many servers as it can."""
    servers = _servers(pool, group)
    if not servers:
        return pool
    all_at_once = dataclasses.replace(
        group,
        resources={
            name: amount * servers for name, amount in group.resources.items()
        },
    )
    return pool.after(all_at_once) or pool


def find_servable(requests: Iterable[Request], hosts: Hosts) -> list[bool]:
    """Whether some host can serve each request, after those before it."""
    left: dict[str, Pools] = {}
    full: dict[object, set[str]] = {}
    found = []
    for request in requests:
        groups, is_isolated = tuple(request.groups), request.is_isolated
        is_full = full.setdefault((groups, is_isolated), set())
        found.append(False)
        for hostname, pools in hosts(groups):
            if hostname in is_full or not request.may_use(hostname):
                continue
            then = after(left.get(hostname, pools), groups, is_isolated)
            if then is not None:
                left[hostname] = then
                found[-1] = True
                break
            is_full.add(hostname)
    return found


def _takes_any_units(group: device_profile.Group, pools: Pools) -> bool:
    """Whether it does not matter which units of a provider a server gets."""
    return (
        group.link is None
        and not group.is_on_one_numa_node
        and all(pool.card is None for pool in pools.values())
    )


def after(
    pools: Pools,
    groups: Sequence[device_profile.Group],
    is_isolated: bool = False,
) -> Pools | None:
    """The pools when a server has got all groups; None if it cannot.

    A group that is joined gets a provider of its set, any other one that where
    it costs least.

    :param is_isolated: whether each group needs a provider of its own
    """
    places: Iterable[tuple[str | None, device_profile.Group]] = (
        (None, group) for group in groups
    )
    if any(group.link is not None for group in groups):
        fit = Fit(
            tuple(pools),
            lambda rp_uuid, group: pools[rp_uuid].room(group),
            is_isolated,
        )
        if not fit.serves(groups, lambda: _links(pools)):
            return None
        places = fit.chosen
    left = dict(pools)
    used: set[str] = set()
    for given, group in places:
        rp_uuid = given or _cheapest(left, group, used)
        then = None if rp_uuid is None else left[rp_uuid].after(group)
        if rp_uuid is None or then is None:
            return None
        left[rp_uuid] = then
        if is_isolated:
            used.add(rp_uuid)
    return left


def _cheapest(
    pools: Pools, group: device_profile.Group, used: Collection[str]
) -> str | None:
    """The provider where a group costs least, None if none can serve it."""
    costs = (
        (cost, rp_uuid)
        for rp_uuid, pool in pools.items()
        if rp_uuid not in used
        and (cost := pool.cost(group, unit_choice.UnitPolicy.PACK)) is not None
    )
    return min(costs, default=(None, None))[1]


def _links(pools: Pools) -> host_links.HostLinks:
    return host_links.HostLinks(
        {
            rp_uuid: pool.units
            for rp_uuid, pool in pools.items()
            if pool.linked_on is not None
        }
    )
