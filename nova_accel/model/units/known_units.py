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

"""The accelerators of all hosts, as nova-scheduler knows them.

It decides nothing: Placement does. It says which of the candidates is best,
and whether it is worth asking why there is none.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import itertools
import sys
import threading
from typing import NamedTuple

from nova_accel.model.cards import card_slices
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation
from nova_accel.model.units import free_units
from nova_accel.model.units import host_fit
from nova_accel.model.units import host_links
from nova_accel.model.units import known_deployables
from nova_accel.model.units import known_inventories
from nova_accel.model.units import known_pool
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_choice
from nova_accel.model.units import unit_claims

#: For how many requests the host that could serve them is remembered.
_REMEMBERED = 256

#: Whether each group needs a provider of its own, and the groups.
_Request = tuple[bool, tuple[device_profile.Group, ...]]


class _Serving(NamedTuple):
    """A host that could serve a request, and its pools at that time."""

    hostname: str
    pools: Sequence[tuple[str, known_pool.KnownPool]]


class KnownUnits:
    """The deployables of all hosts, with pools of their free units.

    Threads may share it. Known pools are read without a lock, and each pool is
    replaced as a whole.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._deployables = known_deployables.KnownDeployables()
        self._pools: dict[str, known_pool.KnownPool] = {}
        self._links: dict[str, host_links.HostLinks] = {}
        self._claims = unit_claims.UnitClaims()
        #: The names of the hosts that do not report.
        self.silent: frozenset[str] = frozenset()
        #: The names of those of which Placement lacks the last change.
        self.unpublished: frozenset[str] = frozenset()
        self._doubtful: frozenset[str] = frozenset()
        self._demand: Mapping[str, float] = {}
        self._served_by: dict[_Request, _Serving] = {}
        #: The units that are promised and not claimed yet.
        self.promises = unit_claims.Promises()

    @property
    def demand(self) -> Mapping[str, float]:
        """Bitstream -> the demand for each idle region that holds it."""
        return self._demand

    @demand.setter
    def demand(self, demand: Mapping[str, float]) -> None:
        with self._lock:
            self._demand = demand
            self._drop_pools(
                [
                    rp_uuid
                    for rp_uuid, pool in self._pools.items()
                    if pool.holds_bitstreams
                ]
            )

    def idle_regions(self) -> dict[str, int]:
        """Bitstream -> how many regions hold it and serve no one."""
        with self._lock:
            return self._deployables.idle_regions()

    def pool(self, rp_uuid: str) -> Sequence[free_units.FreeUnits]:
        """All deployables of a provider, with the units that are free.

        Units that are claimed and not yet bound are not free. A provider that
        is not known has no deployables.
        """
        return self._pool(rp_uuid).units

    def free(self, rp_uuid: str, resource_class: str) -> int:
        """How many units of a class a provider is known to have free."""
        return sum(
            units.free
            for units in self.pool(rp_uuid)
            if units.resource_class == resource_class
        )

    def cost(
        self,
        group: device_profile.Group,
        rp_uuid: str,
        policy: unit_choice.UnitPolicy = unit_choice.UnitPolicy.PACK,
    ) -> unit_choice.Cost | None:
        """The cost of serving a group by a provider; None if it cannot.

        It is remembered until the provider or the demand changes.
        """
        pool = self._pools.get(rp_uuid) or self._pool(rp_uuid)
        return pool.cost(group, policy)

    def harm(self, amounts: host_links.Amounts) -> host_links.Harm | None:
        """The harm of a choice to the sets of joined devices of one host.

        :param amounts: what is taken of which pools of the host
        :returns: None if none of the pools is one of joined devices
        """
        for rp_uuid, _class in amounts:
            pool = self._pools.get(rp_uuid) or self._pool(rp_uuid)
            if pool.linked_on is not None:
                return self._links_of(pool.linked_on).harm(amounts)
        return None

    def harm_to_cards(
        self, amounts: host_links.Amounts, is_packed: bool
    ) -> card_slices.Harm | None:
        """The harm of a choice to the cards of many shapes among the pools.

        :param amounts: what is taken of which pools
        :returns: None if a card has no room for all that is taken of it
        """
        of_pools: dict[str, dict[str, int]] = {}
        for (rp_uuid, resource_class), amount in amounts.items():
            of_pools.setdefault(rp_uuid, {})[resource_class] = amount
        harms = []
        for rp_uuid, wanted in of_pools.items():
            card = self._pool(rp_uuid).card
            if card is not None:
                harm = card.harm(wanted, is_packed)
                if harm is None:
                    return None
                harms.append(harm)
        return card_slices.add_up(harms)

    def links(self, published: bool = False) -> list[host_links.HostLinks]:
        """The link sets of all hosts that report and have some.

        :param published: only of those that are in Placement as they are
        """
        left_out = self._doubtful if published else self.silent
        with self._lock:
            hostnames = self._deployables.linked_hosts() - left_out
        return [self._links_of(hostname) for hostname in sorted(hostnames)]

    def largest(self, group: device_profile.Group, joined: int = 0) -> int:
        """The most units that a provider has for a group, free or not.

        If the group wants one NUMA node, it is the most units on one. It is 0
        if no provider is known to suit the group.

        :param joined: how many devices have to be joined, if the group has a
            link
        """
        with self._lock:
            return self._deployables.sizes.largest(group, joined)

    def share(self, group: device_profile.Group) -> int:
        """The largest share of a card that a unit of the group may take.

        It is 0 if no provider is known to suit the group.
        """
        with self._lock:
            return self._deployables.sizes.share(group)

    def serves(
        self,
        groups: Iterable[device_profile.Group],
        is_isolated: bool = False,
    ) -> bool:
        """Whether a host has free units for all of the groups.

        It reports, and Placement has it as it is. Placement knows better:
        False is a suspicion, which also falls on some requests with several
        groups that could be served.

        :param is_isolated: whether each group needs a provider of its own
        """
        request = is_isolated, tuple(groups)
        before = self._served_by.get(request)
        if before is not None and self._still_serves(before):
            return True
        wanted = host_fit.sort(request[1])
        with self._lock:
            # The host that could serve them last time is tried first.
            for hostname in itertools.chain(
                [] if before is None else [before.hostname],
                self._deployables.free.hosts(wanted),
            ):
                if self._host_serves(hostname, wanted, is_isolated):
                    self._remember(request, hostname)
                    return True
        return False

    def promise(
        self,
        consumer: str,
        promise: unit_claims.Promise,
        now: float,
    ) -> bool:
        """Promise free units, beside those that were promised before.

        A host that is not known restricts nothing.

        :param now: as for :meth:`claim`
        :returns: whether there are enough; nothing is promised otherwise
        """
        request = promise.request
        with self._lock:
            if not self._deployables.of_host(request.only or ''):
                request = request._replace(only=None)
            request = request._replace(groups=host_fit.sort(request.groups))
            return self.promises.give(
                consumer, promise._replace(request=request), now, self._hosts
            )

    def may_serve(self, groups: Iterable[device_profile.Group]) -> bool:
        """Whether a host might serve them if all claims were given up.

        A claim is kept for a while if its server was deleted before the
        database was read again.
        """
        with self._lock:
            return next(self._deployables.free.hosts(groups), None) is not None

    def _still_serves(self, before: _Serving) -> bool:
        """Whether nothing is known against the host, and no pool changed."""
        return before.hostname not in self._doubtful and all(
            self._pools.get(rp_uuid) is pool for rp_uuid, pool in before.pools
        )

    def _remember(self, request: _Request, hostname: str) -> None:
        if len(self._served_by) >= _REMEMBERED:
            self._served_by.clear()
        self._served_by[request] = _Serving(
            hostname,
            [
                (rp_uuid, self._pool(rp_uuid))
                for rp_uuid in self._deployables.free.of_host(hostname)
            ],
        )

    def count_hosts(
        self,
        groups: Iterable[device_profile.Group],
        is_isolated: bool = False,
    ) -> int:
        """How many hosts could serve the groups, as :meth:`serves` finds."""
        wanted = host_fit.sort(groups)
        with self._lock:
            hosts = list(self._deployables.free.hosts(wanted))
        return sum(
            self._host_serves(hostname, wanted, is_isolated)
            for hostname in hosts
        )

    def count_servers(
        self,
        groups: Sequence[device_profile.Group],
        most: int = sys.maxsize,
        before: Iterable[Sequence[device_profile.Group]] = (),
    ) -> dict[str, int]:
        """Host -> how many servers could start there now.

        The region that a bitstream is for is not looked up.

        :param groups: of a profile
        :param most: of all hosts, where counting ends
        :param before: the groups of profiles with which as many servers start
            first as can be
        :raises NotFound: a group is larger than all pools, free or not
        """
        wanted, *others = map(self.parts, (groups, *before))
        found: dict[str, int] = {}
        with self._lock:
            for hostname, pools in self._hosts(wanted):
                here = host_fit.count(pools, wanted, most, others)
                if here:
                    found[hostname] = here
                    most -= here
                if most <= 0:
                    break
        return found

    def disabled_on(self, resource_classes: Collection[str]) -> set[str]:
        """The hosts that have disabled devices of some classes."""
        with self._lock:
            return self._deployables.disabled_on(resource_classes)

    def parts(
        self, groups: Sequence[device_profile.Group]
    ) -> Sequence[device_profile.Group]:
        """The groups, each as a pool can serve it.

        :raises NotFound: a group is larger than all pools, free or not
        """
        groups = link_division.off_fabric(groups)
        return host_fit.sort(link_division.divided(groups, self.largest).parts)

    def pools(self) -> dict[str, dict[str, known_pool.KnownPool]]:
        """Host -> its pools, of all hosts that report."""
        with self._lock:
            return {
                hostname: {rp_uuid: self._pool(rp_uuid) for rp_uuid in here}
                for hostname, here in self._deployables.providers().items()
                if hostname not in self.silent
            }

    def inventories(
        self, resource_classes: Collection[str]
    ) -> list[explanation.Inventory]:
        """All inventories of the classes, and why units are not free."""
        with self._lock:
            deployables = [
                each
                for each in self._deployables.all
                if each.resource_class in resource_classes
            ]
            claimed = {
                rp_uuid: self._claims.of(rp_uuid)
                for rp_uuid in {each.rp_uuid for each in deployables}
            }
            taken = {
                rp_uuid: self._deployables.taken(rp_uuid)
                for rp_uuid in claimed
            }
        return known_inventories.build(
            deployables, claimed, self.silent, taken, self.unpublished
        )

    def claim(
        self,
        consumer: str,
        rp_uuid: str,
        resource_class: str,
        amount: int,
        now: float,
    ) -> None:
        """Count units as taken until their host binds them, or for a while.

        A new claim of the same consumer, provider and class takes the place of
        the one before; of nothing it withdraws it.

        :param now: seconds of the same clock as for :meth:`apply`
        """
        with self._lock:
            if amount > 0:
                self.promises.end(consumer)
            self._drop_pools(
                self._claims.add(
                    consumer, rp_uuid, resource_class, amount, now
                )
            )

    def reserve(
        self,
        consumer: str,
        wanted: host_links.Amounts,
        instead: host_links.Amounts,
        now: float,
    ) -> bool:
        """Claim units if they are free, in the place of others.

        :param wanted: what is taken of which providers
        :param instead: what the consumer has claimed before
        :param now: as for :meth:`claim`
        :returns: whether they are free; nothing is claimed otherwise
        """
        with self._lock:
            self._withdraw(consumer, instead, now)
            for place, amount in wanted.items():
                # Units that are claimed already may exclude the next ones.
                # Placement knows better of a provider that is not known yet.
                if self.pool(place[0]) and self.free(*place) < amount:
                    self._withdraw(consumer, wanted, now)
                    return False
                self.claim(consumer, *place, amount, now)
            return True

    def _withdraw(
        self, consumer: str, places: host_links.Amounts, now: float
    ) -> None:
        for place in places:
            self.claim(consumer, *place, 0, now)

    def apply(self, changes: unit_changes.Changes, now: float) -> None:
        """Learn of changes; the same ones may be told again.

        :param now: seconds of a clock that never goes back
        """
        with self._lock:
            touched = self._deployables.apply(changes)
            for each in touched.bound:
                self._claims.bind(*each)
            for hostname in touched.hostnames:
                self._links.pop(hostname, None)
            self.silent = changes.silent
            self.unpublished = changes.unpublished
            self._doubtful = changes.silent | changes.unpublished
            self._drop_pools(touched.rp_uuids | self._claims.expire(now))

    def _drop_pools(self, rp_uuids: Iterable[str]) -> None:
        for rp_uuid in rp_uuids:
            pool = self._pools.pop(rp_uuid, None)
            if pool is not None and pool.linked_on is not None:
                self._links.pop(pool.linked_on, None)

    def _pool(self, rp_uuid: str) -> known_pool.KnownPool:
        found = self._pools.get(rp_uuid)
        if found is not None:
            return found
        with self._lock:
            deployables = self._deployables.of_provider(rp_uuid)
            if not deployables:
                return known_pool.EMPTY
            made = known_pool.KnownPool(
                (deployable.units() for deployable in deployables),
                self._claims.of(rp_uuid),
                self._demand,
                unit_changes.linked_on(deployables),
            )
            self._pools[rp_uuid] = made
            return made

    def _links_of(self, hostname: str) -> host_links.HostLinks:
        found = self._links.get(hostname)
        if found is not None:
            return found
        with self._lock:
            made = host_links.HostLinks(
                {
                    rp_uuid: self._pool(rp_uuid).units
                    for rp_uuid in {
                        each.rp_uuid
                        for each in self._deployables.of_host(hostname)
                        if each.link_sets
                    }
                }
            )
            self._links[hostname] = made
            return made

    def _hosts(
        self, groups: Sequence[device_profile.Group]
    ) -> Iterator[tuple[str, Mapping[str, known_pool.KnownPool]]]:
        """The hosts that report and may serve groups, with their pools."""
        free = self._deployables.free
        for hostname in free.hosts(groups):
            if hostname not in self.silent:
                yield (
                    hostname,
                    {
                        rp_uuid: self._pool(rp_uuid)
                        for rp_uuid in free.of_host(hostname)
                    },
                )

    def _host_serves(
        self,
        hostname: str,
        groups: Sequence[device_profile.Group],
        is_isolated: bool,
    ) -> bool:
        """Whether each group finds a provider, in the order given.

        :param is_isolated: whether each group needs a provider of its own
        """
        return hostname not in self._doubtful and host_fit.Fit(
            tuple(self._deployables.free.of_host(hostname)),
            lambda rp_uuid, group: self._pool(rp_uuid).room(group),
            is_isolated,
        ).serves(groups, lambda: self._links_of(hostname))
