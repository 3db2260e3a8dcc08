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

"""Where the sources of the fleet disagree, and what helps.

Whatever an unfinished operation of Nova may explain is no disagreement.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import functools
from typing import NamedTuple

from nova_accel import reason
from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import placement_comparison
from nova_accel.model.units import unit_state

Kind = disagreement.Subject

#: How many ARQs a text names.
_NAMED = 2

#: The states of a unit that no server is given, cleaned or not.
_NOT_OFFERED = (
    unit_state.UnitState.DISABLED,
    unit_state.UnitState.FAULTY,
    unit_state.UnitState.GONE,
)


class _Binding(NamedTuple):
    """The ARQs of one server on one host in one role, with their units."""

    hostname: str
    instance_uuid: str
    role: arq_types.Role | None
    held: list[tuple[fleet_sources.FleetArq, fleet_sources.FleetUnit | None]]

    @property
    def units(self) -> list[fleet_sources.FleetUnit]:
        return [unit for _arq, unit in self.held if unit is not None]

    @property
    def bare(self) -> list[fleet_sources.FleetArq]:
        """The ARQs without a unit, or whose state says so."""
        return [
            arq
            for arq, unit in self.held
            if unit is None or not arq.is_holding
        ]

    @property
    def gone(self) -> dict[fleet_sources.FleetArq, fleet_sources.FleetUnit]:
        """The ARQs whose units the host does not find, with these."""
        return {
            arq: unit
            for arq, unit in self.held
            if unit is not None and not unit.condition.is_present
        }

    def find(
        self,
        kind: Kind,
        units: Iterable[fleet_sources.FleetUnit],
        words: str,
        but: str,
        cure: str,
    ) -> finding.Finding:
        """A finding about some of its units."""
        return disagreement.make(
            kind, self.hostname, self.instance_uuid, units, words, but, cure
        )


class _Comparison:
    def __init__(
        self, ours: fleet_sources.Ours, nova: fleet_sources.NovaReading
    ) -> None:
        self._ours, self._nova = ours, nova
        self._hosts = {host.name: host for host in ours.hosts}
        self._devices = {device.uuid: device for device in ours.devices}

    def find(
        self, placement: fleet_sources.Placement | None
    ) -> Iterator[finding.Finding]:
        for binding in self._bindings:
            unneeded = self._unneeded(binding)
            if unneeded is None:
                yield from self._of_needed(binding)
            else:
                yield unneeded
        yield from self._of_unbound()
        yield from self._of_passed_through()
        if placement is not None:
            yield from self._of_counts(placement)
            yield from placement_comparison.find_nobodys(self._ours, placement)

    @functools.cached_property
    def _bindings(self) -> list[_Binding]:
        found: dict[tuple[str, str, str | None], _Binding] = {}
        held = [(unit.arq, unit) for unit in self._ours.units if unit.arq] + [
            (arq, None) for arq in self._ours.unheld
        ]
        for arq, unit in held:
            if arq.instance_uuid is None or arq.hostname is None:
                continue
            found.setdefault(
                (arq.hostname, arq.instance_uuid, arq.role),
                _Binding(arq.hostname, arq.instance_uuid, arq.typed_role, []),
            ).held.append((arq, unit))
        return list(found.values())

    def _unneeded(self, binding: _Binding) -> finding.Finding | None:
        """Find that no one needs a binding there, None if somebody may."""
        server = self._nova.servers.get(binding.instance_uuid)
        host = self._hosts.get(binding.hostname)
        service_host = binding.hostname if host is None else host.service_host
        why = binding_repairs.why_unneeded(binding.role, server, service_host)
        if why is None:
            return None
        kind = Kind.LEAK
        if server is None:
            why = 'Nova has no such server'
        elif (
            binding.role is not arq_types.Role.OLD and server.host is not None
        ):
            kind, why = Kind.ELSEWHERE, f'the server is on host {server.host}'
        return binding.find(
            kind,
            binding.units,
            f'{_named(arq for arq, _unit in binding.held)} bound on host '
            f'{binding.hostname}',
            why,
            'nova-accel-manage audit --fix'
            if binding.role is None
            else binding_repairs.remedy(host is None or host.is_silent),
        )

    def _of_needed(self, binding: _Binding) -> Iterator[finding.Finding]:
        server = self._nova.servers.get(binding.instance_uuid)
        bare, gone = binding.bare, binding.gone
        if bare and server is not None and server.is_settled:
            yield binding.find(
                Kind.MISSING,
                binding.units,
                f'the server is on host {server.host}, and has no task',
                f'{_named(bare)} without a unit',
                'rebuild or delete the server',
            )
        if gone:
            yield binding.find(
                Kind.GONE,
                gone.values(),
                f'{_named(gone)} bound to it',
                'the host does not find the device any more',
                'look at the host; put the device back, or delete the server',
            )

    def _of_unbound(self) -> Iterator[finding.Finding]:
        """Units of ARQs that are bound to no server."""
        for unit in self._ours.units:
            if unit.arq is not None and (
                unit.arq.instance_uuid is None or unit.arq.hostname is None
            ):
                yield disagreement.make(
                    Kind.LEAK,
                    self._devices[unit.device_uuid].hostname,
                    unit.arq.uuid,
                    [unit],
                    f'{_named([unit.arq])} given a unit',
                    f'it is {unit.arq.state} and bound to no server',
                    'nova-accel-manage audit --fix',
                )

    def _of_passed_through(self) -> Iterator[finding.Finding]:
        """Units that Nova's own PCI tracker has given to servers, too."""
        taken: defaultdict[
            tuple[str, str, str, str | None], list[fleet_sources.FleetUnit]
        ] = defaultdict(list)
        for unit in self._ours.units if self._nova.passed_through else ():
            hostname, address = self._devices[unit.device_uuid].place
            if unit.arq is None and unit.condition.reason(_NOT_OFFERED):
                continue
            # The server may have the card with all its functions.
            for place in (unit.address, address):
                other = self._nova.passed_through.get((hostname, place))
                if other is not None:
                    holder = unit.arq and (
                        unit.arq.instance_uuid or unit.arq.uuid
                    )
                    taken[hostname, place, other, holder].append(unit)
                    break
        for (hostname, place, other, holder), units in taken.items():
            yield disagreement.make(
                Kind.DOUBLE,
                hostname,
                other,
                units,
                f"Nova's PCI tracker has given {place} to the server",
                'it is free' if holder is None else f'it is held for {holder}',
                'STOP: disable the device, look at both servers, and take it '
                'out of one device_spec',
            )

    def _of_counts(
        self, placement: fleet_sources.Placement
    ) -> Iterator[finding.Finding]:
        """Servers whose units Placement counts differently."""
        held: defaultdict[
            placement_comparison.Key, list[fleet_sources.FleetUnit]
        ] = defaultdict(list)
        told = set()
        for binding in self._bindings:
            if binding.bare or self._unneeded(binding) is not None:
                told.add(binding.instance_uuid)
            for unit in binding.units:
                held[
                    unit.rp_uuid, binding.instance_uuid, unit.resource_class
                ].append(unit)
        return placement_comparison.compare_counts(
            self._ours, self._nova, placement, held, told
        )


def compare(
    ours: fleet_sources.Ours,
    nova: fleet_sources.NovaReading,
    placement: fleet_sources.Placement | None = None,
) -> list[finding.Finding]:
    """Where the sources disagree, sorted by kind and host.

    :param placement: None if Placement was not asked
    """
    return sorted(
        _Comparison(ours, nova).find(placement),
        key=lambda found: (
            found.kind,
            found.hostname or '',
            found.about,
            found.units,
        ),
    )


def lasting(
    before: Iterable[finding.Finding], after: Iterable[finding.Finding]
) -> list[finding.Finding]:
    """The findings that were found twice, so that no change explains them."""
    first = set(before)
    return [found for found in after if found in first]


def _named(arqs: Iterable[fleet_sources.FleetArq]) -> str:
    """Such as "ARQ 1, 2 and 3 more are"."""
    uuids = sorted(arq.uuid for arq in arqs)
    return f'ARQ {reason.some(uuids, _NAMED)} {disagreement.are(len(uuids))}'
