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

"""The pools of a cloud, one for each host, and ways to choose from them."""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import random
from typing import NamedTuple

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import unit_choice


def chance(seed: int) -> random.Random:
    """The same chances at each run of a simulation."""
    return random.Random(seed)  # noqa: S311 nothing here is a secret


class Place(NamedTuple):
    """What a server gets: units of one host."""

    host: int
    #: Deployable uuid -> how many of its units.
    units: Mapping[str, int]


class Cloud:
    """Hosts with a pool each.

    ``revisions`` counts the changes of each host.
    """

    def __init__(
        self, pools: Sequence[Sequence[free_units.FreeUnits]]
    ) -> None:
        self._pools = [
            {each.deployable_uuid: each for each in pool} for pool in pools
        ]
        self.revisions = [0] * len(pools)

    def __len__(self) -> int:
        return len(self._pools)

    def pool(self, host: int) -> list[free_units.FreeUnits]:
        return list(self._pools[host].values())

    def free(self, host: int) -> int:
        return sum(each.free for each in self._pools[host].values())

    def take(self, place: Place) -> None:
        for uuid, amount in place.units.items():
            self._change(
                place.host, uuid, free=self._at(place.host, uuid).free - amount
            )

    def give_back(self, place: Place) -> None:
        self.take(
            place._replace(units={uuid: -n for uuid, n in place.units.items()})
        )

    def held(self, host: int, uuid: str) -> str | None:
        """The bitstream that a region holds."""
        return self._at(host, uuid).bitstream_id

    def program(self, host: int, uuid: str, bitstream: str | None) -> None:
        self._change(host, uuid, bitstream_id=bitstream)

    def _at(self, host: int, uuid: str) -> free_units.FreeUnits:
        return self._pools[host][uuid]

    def _change(
        self, host: int, uuid: str, **fields: int | str | None
    ) -> None:
        self._pools[host][uuid] = dataclasses.replace(
            self._at(host, uuid),
            **fields,  # type: ignore[arg-type]
        )
        self.revisions[host] += 1


class Chooser(abc.ABC):
    """A way to choose among all units of a cloud."""

    def __init__(self, cloud: Cloud, chance: random.Random) -> None:
        self.cloud = cloud
        self.chance = chance

    @abc.abstractmethod
    def choose(self, group: device_profile.Group) -> Place | None:
        """The units for a server, which are not yet taken."""


class ByPolicy(Chooser):
    """The policy of the product, which compares all hosts.

    ``demand`` is as :func:`unit_choice.choose` takes it.
    """

    def __init__(self, cloud: Cloud, chance: random.Random) -> None:
        super().__init__(cloud, chance)
        self.demand: Mapping[str, float] = {}
        # For each host: what a group costs as long as the host stays the same.
        self._known: list[tuple[int, dict[int, tuple[float, ...] | None]]] = [
            (-1, {})
        ] * len(cloud)

    def choose(self, group: device_profile.Group) -> Place | None:
        best: tuple[float, ...] | None = None
        hosts: list[int] = []
        for host in range(len(self.cloud)):
            cost = self._cost(host, group)
            if cost is None or (best is not None and cost > best):
                continue
            if cost != best:
                best, hosts = cost, []
            hosts.append(host)
        if not hosts:
            return None
        host = self.chance.choice(hosts)
        choice = self._choice(host, group)
        assert choice is not None
        return Place(host, choice.units)

    def forget(self) -> None:
        """Forget all costs, as the demand has changed."""
        self._known = [(-1, {})] * len(self.cloud)

    def _cost(
        self, host: int, group: device_profile.Group
    ) -> tuple[float, ...] | None:
        revision, known = self._known[host]
        if revision != self.cloud.revisions[host]:
            known = {}
            self._known[host] = self.cloud.revisions[host], known
        # The groups of a simulation live as long as it does.
        if id(group) not in known:
            choice = self._choice(host, group)
            known[id(group)] = None if choice is None else choice.cost
        return known[id(group)]

    def _choice(
        self, host: int, group: device_profile.Group
    ) -> unit_choice.UnitChoice | None:
        return unit_choice.choose(
            group, self.cloud.pool(host), demand=self.demand
        )


class MostFreeFirst(Chooser):
    """The host with the most free units, and whichever of its units."""

    def choose(self, group: device_profile.Group) -> Place | None:
        host = max(range(len(self.cloud)), key=self.cloud.free)
        return _any_units(self, host, group)


class FirstCandidate(Chooser):
    """The first host that has enough, and whichever of its units."""

    def choose(self, group: device_profile.Group) -> Place | None:
        for host in range(len(self.cloud)):
            place = _any_units(self, host, group)
            if place is not None:
                return place
        return None


def _any_units(
    chooser: Chooser, host: int, group: device_profile.Group
) -> Place | None:
    """Units of a host as no policy would choose them."""
    [amount] = group.resources.values()
    free = [
        each.deployable_uuid
        for each in chooser.cloud.pool(host)
        for _unit in range(each.free)
    ]
    if len(free) < amount:
        return None
    chosen = chooser.chance.sample(free, amount)
    return Place(host, {uuid: chosen.count(uuid) for uuid in chosen})
