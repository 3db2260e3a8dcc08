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

"""The deployables of all hosts, found by host, provider, or free units."""

import collections
from collections.abc import Collection
from collections.abc import Mapping
import types
from typing import NamedTuple

from nova_accel.model.cards import card_slice
from nova_accel.model.units import free_providers
from nova_accel.model.units import pool_sizes
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_state

_DISABLED = unit_state.MEANINGS[unit_state.UnitState.DISABLED].public

#: A host or provider -> its deployables by their uuids.
_Places = dict[str, dict[str, unit_changes.ChangedDeployable]]

_NOTHING: Mapping[str, unit_changes.ChangedDeployable] = (
    types.MappingProxyType({})
)


class Touched(NamedTuple):
    """The places that some changes have changed.

    ``bound`` is how many units of a class are not free any more, as
    (provider, resource class, units).
    """

    rp_uuids: set[str]
    hostnames: set[str]
    bound: list[tuple[str, str, int]]


class KnownDeployables:
    """All deployables. Only one thread uses it at a time.

    :ivar free: the providers that have free units
    :ivar sizes: how many units providers have, free or not
    """

    def __init__(self) -> None:
        self.free = free_providers.FreeProviders()
        self.sizes = pool_sizes.PoolSizes()
        self._all: dict[str, unit_changes.ChangedDeployable] = {}
        self._of_host: _Places = {}
        self._of_provider: _Places = {}

    @property
    def all(self) -> Collection[unit_changes.ChangedDeployable]:
        return self._all.values()

    def of_host(
        self, hostname: str
    ) -> Collection[unit_changes.ChangedDeployable]:
        return self._of_host.get(hostname, _NOTHING).values()

    def of_provider(
        self, rp_uuid: str
    ) -> Collection[unit_changes.ChangedDeployable]:
        return self._of_provider.get(rp_uuid, _NOTHING).values()

    def taken(self, rp_uuid: str) -> frozenset[card_slice.CardSlice]:
        """The slices that servers have of a provider's card."""
        return frozenset(
            of_server
            for each in self.of_provider(rp_uuid)
            for of_server in each.taken
        )

    def idle_regions(self) -> dict[str, int]:
        """Bitstream -> how many regions hold it and serve no one."""
        idle = {
            (each.bitstream_id, each.device_uuid, each.region)
            for each in self.all
            if each.bitstream_id is not None and 0 < each.total == each.free
        }
        return dict(collections.Counter(bitstream for bitstream, *_ in idle))

    def linked_hosts(self) -> set[str]:
        """The hosts that have joined devices."""
        return {each.hostname for each in self.all if each.link_sets}

    def disabled_on(self, resource_classes: Collection[str]) -> set[str]:
        """The hosts that have disabled devices of some classes."""
        return {
            each.hostname
            for each in self.all
            if each.unusable == _DISABLED
            and each.resource_class in resource_classes
        }

    def providers(self) -> dict[str, set[str]]:
        """Host -> its providers."""
        return {
            hostname: {each.rp_uuid for each in here.values()}
            for hostname, here in self._of_host.items()
        }

    def apply(self, changes: unit_changes.Changes) -> Touched:
        """Learn of changes; the same ones may be told again."""
        touched = Touched(set(), set(), [])
        of_hosts = changes.of_hosts
        for hostname in list(self._of_host if changes.is_all else of_hosts):
            here = {each.uuid for each in of_hosts.get(hostname, ())}
            for uuid in self._of_host.get(hostname, {}).keys() - here:
                self._put(uuid, None, touched)
        for deployables in (*of_hosts.values(), changes.others):
            for deployable in deployables:
                uuid = deployable.uuid
                if self._all.get(uuid) != deployable:
                    self._put(uuid, deployable, touched)
        for rp_uuid in touched.rp_uuids:
            self._sort(rp_uuid)
        return touched

    def _put(
        self,
        uuid: str,
        deployable: unit_changes.ChangedDeployable | None,
        touched: Touched,
    ) -> None:
        """Replace a deployable, or forget it."""
        before = self._all.pop(uuid, None)
        if before is not None:
            for places, place in self._places(before, touched):
                del places[place][uuid]
                if not places[place]:
                    del places[place]
            touched.bound.append(
                (
                    before.rp_uuid,
                    before.resource_class,
                    before.bound(deployable),
                )
            )
        if deployable is not None:
            self._all[uuid] = deployable
            for places, place in self._places(deployable, touched):
                places.setdefault(place, {})[uuid] = deployable

    def _places(
        self, deployable: unit_changes.ChangedDeployable, touched: Touched
    ) -> tuple[tuple[_Places, str], ...]:
        touched.rp_uuids.add(deployable.rp_uuid)
        touched.hostnames.add(deployable.hostname)
        return (
            (self._of_host, deployable.hostname),
            (self._of_provider, deployable.rp_uuid),
        )

    def _sort(self, rp_uuid: str) -> None:
        hostname = ''
        kinds: collections.Counter[free_providers.Kind] = collections.Counter()
        deployables = self.of_provider(rp_uuid)
        self.sizes.put(rp_uuid, deployables)
        for deployable in deployables:
            if deployable.free > 0:
                hostname = deployable.hostname
                kind = deployable.resource_class, deployable.traits
                kinds[kind] += deployable.free
        self.free.put(rp_uuid, hostname, kinds)
