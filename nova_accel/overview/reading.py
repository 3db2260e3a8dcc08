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

"""The fleet as all sources have it now."""

from collections.abc import Collection
from collections.abc import Iterable
from typing import Any
from typing import Protocol

from nova_accel.model import finding
from nova_accel.model import naming
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_comparison
from nova_accel.model.fleet import fleet_sources
from nova_accel.overview import parallel

_Allocations = dict[str, dict[str, dict[str, int]]]


class Sources(Protocol):
    """The ways of one program to the sources."""

    def ours(self) -> fleet_sources.Ours:
        """The database of accelerators."""

    def nova(
        self, ours: fleet_sources.Ours, consumers: Collection[str]
    ) -> fleet_sources.NovaReading:
        """Nova's words about the servers of all ARQs.

        :param consumers: further uuids, which may be servers
        """

    def placement(self, path: str) -> Any:
        """Placement's JSON of a GET, None if there is no such thing.

        It may be called by several threads.
        """


def glance(sources: Sources) -> fleet.Fleet:
    """The fleet; something may have changed while it was read.

    So where sources disagree may mean nothing.
    """
    return _join(sources, None)[1]


def read(sources: Sources, asks_placement: bool = False) -> fleet.Fleet:
    """The fleet.

    Where sources disagree, they are read again: it may be that something
    changed between the first and the last of them. Only what both readings
    have is told.

    :param asks_placement: whether Placement is asked for the allocations of
        each provider, too
    """
    placement = None
    if asks_placement:
        providers = _providers(sources)
        parents = {provider.parent_uuid for provider in providers}
        # A provider above others has nothing to give.
        placement = fleet_sources.Placement(
            providers,
            _allocations(
                sources,
                (
                    provider.uuid
                    for provider in providers
                    if provider.uuid not in parents
                ),
            ),
        )
    ours, found = _join(sources, placement)
    if not found.compared:
        return found
    if placement is not None:
        placement = fleet_sources.Placement(
            _providers(sources),
            {
                **placement.allocations,
                **_allocations(sources, _suspects(ours, found.compared)),
            },
        )
    _ours, again = _join(sources, placement)
    return again._replace(
        compared=tuple(
            fleet_comparison.lasting(found.compared, again.compared)
        )
    )


def _join(
    sources: Sources, placement: fleet_sources.Placement | None
) -> tuple[fleet_sources.Ours, fleet.Fleet]:
    # Nova is asked later, when each ARQ has its instance.
    ours = sources.ours()
    consumers: set[str] = set()
    if placement is not None:
        consumers = placement.consumers
        # A provider that Placement does not have counts nothing.
        none: _Allocations = {unit.rp_uuid: {} for unit in ours.units}
        placement = placement._replace(
            allocations={**none, **placement.allocations}
        )
    return ours, fleet.join(ours, sources.nova(ours, consumers), placement)


def _suspects(
    ours: fleet_sources.Ours, compared: Iterable[finding.Finding]
) -> set[str]:
    """The providers of the hosts where sources disagree."""
    hostnames = {found.hostname for found in compared}
    devices = {
        device.uuid for device in ours.devices if device.hostname in hostnames
    }
    return {unit.rp_uuid for unit in ours.units if unit.device_uuid in devices}


def _providers(sources: Sources) -> list[fleet_sources.FleetProvider]:
    # Placement refuses a trait that no host has made yet.
    traits = sources.placement(f'/traits?name=in:{naming.OWNERSHIP_TRAIT}')
    if not traits['traits']:
        return []
    answer = sources.placement(
        f'/resource_providers?required={naming.OWNERSHIP_TRAIT}'
    )
    return [
        fleet_sources.FleetProvider(
            found['uuid'], found['name'], found['parent_provider_uuid']
        )
        for found in answer['resource_providers']
    ]


def _allocations(sources: Sources, rp_uuids: Iterable[str]) -> _Allocations:
    """The allocations of providers; one that does not exist has none."""

    def of_provider(rp_uuid: str) -> dict[str, dict[str, int]]:
        answer = sources.placement(
            f'/resource_providers/{rp_uuid}/allocations'
        )
        return {
            consumer: held['resources']
            for consumer, held in (answer or {}).get('allocations', {}).items()
        }

    return parallel.ask('Asking Placement', of_provider, sorted(rp_uuids))
