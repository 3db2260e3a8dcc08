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

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator

from nova_accel.model.profiles import device_profile

#: A resource class, and the traits of units.
Kind = tuple[str, frozenset[str]]


class FreeProviders:
    """The providers that have free units, by their hosts and by kinds.

    Many providers are alike, so there are few kinds.
    """

    def __init__(self) -> None:
        self._of_kind: dict[Kind, dict[str, str]] = {}
        self._of_host: dict[str, set[str]] = {}
        self._places: dict[str, tuple[str, tuple[Kind, ...]]] = {}

    def put(
        self, rp_uuid: str, hostname: str, kinds: Collection[Kind]
    ) -> None:
        """Note the kinds of a provider's free units, possibly none."""
        place = hostname, tuple(kinds)
        before = self._places.get(rp_uuid)
        if before == place:
            return
        if before is not None:
            self._remove(rp_uuid, *before)
        if kinds:
            self._places[rp_uuid] = place
            self._of_host.setdefault(hostname, set()).add(rp_uuid)
            for kind in kinds:
                self._of_kind.setdefault(kind, {})[rp_uuid] = hostname

    def _remove(
        self, rp_uuid: str, hostname: str, kinds: Collection[Kind]
    ) -> None:
        del self._places[rp_uuid]
        for kind in kinds:
            del self._of_kind[kind][rp_uuid]
            if not self._of_kind[kind]:
                del self._of_kind[kind]
        self._of_host[hostname].remove(rp_uuid)
        if not self._of_host[hostname]:
            del self._of_host[hostname]

    def of_host(self, hostname: str) -> Collection[str]:
        """The providers of a host that have free units."""
        return self._of_host.get(hostname, ())

    def hosts(self, groups: Iterable[device_profile.Group]) -> Iterator[str]:
        """The hosts that may serve the rarest of the groups, each once."""
        rarest = min(
            (
                [
                    providers
                    for kind, providers in self._of_kind.items()
                    if suits(group, kind)
                ]
                for group in groups
            ),
            key=lambda found: sum(map(len, found)),
        )
        seen = set()
        for providers in rarest:
            for hostname in providers.values():
                if hostname not in seen:
                    seen.add(hostname)
                    yield hostname


def suits(group: device_profile.Group, kind: Kind) -> bool:
    """Whether units of the kind may serve a part of the group."""
    resource_class, traits = kind
    return (
        resource_class in group.resources
        and group.required <= traits
        and group.forbidden.isdisjoint(traits)
    )
