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

from collections.abc import Iterable
from concurrent import futures

from rich import console
from rich import progress

from nova_accel import conf
from nova_accel.cmd import cells
from nova_accel.cmd import placement_call
from nova_accel.db import fleet as fleet_db
from nova_accel.model import fleet
from nova_accel.model import fleet_drift
from nova_accel.model import fleet_sources
from nova_accel.model import naming

CONF = conf.CONF

#: How many requests Placement gets at a time.
_AT_A_TIME = 8

_Allocations = dict[str, dict[str, dict[str, int]]]


def read(asks_placement: bool = False) -> fleet.Fleet:
    """The fleet, by a number of statements that does not depend on its size.

    Where sources disagree, they are read again: it may be that something
    changed between the first and the last of them. Only what both readings
    have is told.

    :param asks_placement: whether Placement is asked for the allocations of
        each provider, too
    :raises ServiceUnavailable: the database of accelerators or Placement does
        not answer
    :raises ConfigurationError: Nova knows of no cell.
    """
    placement = None
    if asks_placement:
        providers = _providers()
        parents = {provider.parent_uuid for provider in providers}
        # A provider above others has nothing to give.
        placement = fleet_sources.Placement(
            providers,
            _allocations(
                provider.uuid
                for provider in providers
                if provider.uuid not in parents
            ),
        )
    ours, found = _join(placement)
    if not found.drifts:
        return found
    if placement is not None:
        placement = fleet_sources.Placement(
            _providers(),
            {
                **placement.allocations,
                **_allocations(_suspects(ours, found.drifts)),
            },
        )
    _ours, again = _join(placement)
    return again._replace(
        drifts=tuple(fleet_drift.lasting(found.drifts, again.drifts))
    )


def _join(
    placement: fleet_sources.Placement | None,
) -> tuple[fleet_sources.Ours, fleet.Fleet]:
    # Nova is asked later, when each ARQ has its instance.
    ours = fleet_db.read(CONF.nova_accel.host_silence_s)
    uuids = ours.instance_uuids
    if placement is not None:
        uuids |= placement.consumers
        # A provider that Placement does not have counts nothing.
        none: _Allocations = {unit.rp_uuid: {} for unit in ours.units}
        placement = placement._replace(
            allocations={**none, **placement.allocations}
        )
    return ours, fleet.join(ours, cells.read(uuids), placement)


def _suspects(
    ours: fleet_sources.Ours, drifts: Iterable[fleet_drift.Drift]
) -> set[str]:
    """The providers of the hosts where sources disagree."""
    hostnames = {drift.hostname for drift in drifts}
    devices = {
        device.uuid for device in ours.devices if device.hostname in hostnames
    }
    return {unit.rp_uuid for unit in ours.units if unit.device_uuid in devices}


def _providers() -> list[fleet_sources.Provider]:
    # Placement refuses a trait that no host has made yet.
    traits = placement_call.call(
        'get', f'/traits?name=in:{naming.OWNERSHIP_TRAIT}'
    )
    if not traits['traits']:
        return []
    answer = placement_call.call(
        'get', f'/resource_providers?required={naming.OWNERSHIP_TRAIT}'
    )
    return [
        fleet_sources.Provider(
            found['uuid'], found['name'], found['parent_provider_uuid']
        )
        for found in answer['resource_providers']
    ]


def _allocations(rp_uuids: Iterable[str]) -> _Allocations:
    """The allocations of providers; a terminal shows the progress."""
    asked = sorted(rp_uuids)
    terminal = console.Console(stderr=True)
    with futures.ThreadPoolExecutor(_AT_A_TIME) as executor:
        answers = executor.map(placement_call.allocations, asked)
        return dict(
            zip(
                asked,
                progress.track(
                    answers,
                    'Asking Placement',
                    len(asked),
                    console=terminal,
                    transient=True,
                    disable=not terminal.is_terminal,
                ),
                strict=True,
            )
        )
