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

"""The providers that have free units, found by what their units are like."""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from nova_accel.model.profiles import device_profile

#: A resource class, and the traits of units.
Kind = tuple[str, frozenset[str]]


class FreeProviders:
    """The providers that have free units, by their hosts and by kinds.

    Many providers are alike, so there are few kinds.
    """

    def __init__(self) -> None:
        # Kind -> host -> units of all its providers.
        self._of_kind: dict[Kind, dict[str, int]] = {}
        self._of_host: dict[str, set[str]] = {}
        self._places: dict[str, tuple[str, dict[Kind, int]]] = {}

    def put(
        self, rp_uuid: str, hostname: str, kinds: Mapping[Kind, int]
    ) -> None:
        """Note how many free units of which kinds a provider has, if any."""
        place = hostname, dict(kinds)
        before = self._places.get(rp_uuid)
        if before == place:
            return
        if before is not None:
            self._remove(rp_uuid, *before)
        if kinds:
            self._places[rp_uuid] = place
            self._of_host.setdefault(hostname, set()).add(rp_uuid)
            for kind, units in kinds.items():
                hosts = self._of_kind.setdefault(kind, {})
                hosts[hostname] = hosts.get(hostname, 0) + units

    def _remove(
        self, rp_uuid: str, hostname: str, kinds: Mapping[Kind, int]
    ) -> None:
        del self._places[rp_uuid]
        for kind, units in kinds.items():
            hosts = self._of_kind[kind]
            hosts[hostname] -= units
            if not hosts[hostname]:
                del hosts[hostname]
            if not hosts:
                del self._of_kind[kind]
        self._of_host[hostname].remove(rp_uuid)
        if not self._of_host[hostname]:
            del self._of_host[hostname]

    def of_host(self, hostname: str) -> Collection[str]:
        """The providers of a host that have free units."""
        return self._of_host.get(hostname, ())

    def hosts(self, groups: Iterable[device_profile.Group]) -> Iterator[str]:
        """The hosts that have enough units for the groups, each once.

        Which providers have them does not matter here. The hosts are sought
        among those that suit the rarest group.
        """
        wanted = [
            (amount, self._suiting(resource_class, suited))
            for (resource_class, suited), amount in _amounts(groups).items()
        ]
        # Most hosts fail by the largest amount, if any.
        rarest = min(
            wanted, key=lambda each: (sum(map(len, each[1])), -each[0])
        )
        wanted.remove(rarest)
        for hostname, units in _added_up(rarest[1]).items():
            if units >= rarest[0] and all(
                sum(hosts.get(hostname, 0) for hosts in kinds) >= amount
                for amount, kinds in wanted
            ):
                yield hostname

    def _suiting(
        self, resource_class: str, groups: Sequence[device_profile.Group]
    ) -> list[dict[str, int]]:
        """The hosts of each kind of a class that suits one of the groups."""
        return [
            hosts
            for kind, hosts in self._of_kind.items()
            if kind[0] == resource_class
            and any(suits(group, kind) for group in groups)
        ]


def _added_up(kinds: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Host -> units of all kinds."""
    if len(kinds) == 1:
        return kinds[0]
    units: collections.Counter[str] = collections.Counter()
    for hosts in kinds:
        units.update(hosts)
    return units


def _amounts(
    groups: Iterable[device_profile.Group],
) -> dict[tuple[str, tuple[device_profile.Group, ...]], int]:
    """(Class, groups) -> what each group wants of it, and all together."""
    of_class: dict[str, list[device_profile.Group]] = {}
    for group in groups:
        for resource_class in group.resources:
            of_class.setdefault(resource_class, []).append(group)
    return {
        (resource_class, tuple(suited)): sum(
            group.resources[resource_class] for group in suited
        )
        for resource_class, members in of_class.items()
        for suited in (*([group] for group in members), members)
    }


def suits(group: device_profile.Group, kind: Kind) -> bool:
    """Whether units of the kind may serve a part of the group."""
    resource_class, traits = kind
    return (
        resource_class in group.resources
        and group.required <= traits
        and group.forbidden.isdisjoint(traits)
    )
