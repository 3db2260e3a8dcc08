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


"""The fleet at a glance: who has which part of which device.

One function joins what the sources say. It reads nothing itself.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import finding
from nova_accel.model.fleet import finding_places
from nova_accel.model.fleet import fleet_comparison
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.units import unit_state

_State = unit_state.UnitState

#: The order in which the states of a unit are shown. A fault comes before the
#: server that has the unit, which is shown in any case.
_SHOWN = (
    _State.HOST_SILENT,
    _State.GONE,
    _State.FAULTY,
    _State.USED,
    _State.DISABLED,
    *unit_state.UNCLEAN,
    _State.EXCLUDED,
)

_ALARMS = (
    _State.HOST_SILENT,
    _State.GONE,
    _State.FAULTY,
    _State.CLEANING_FAILED,
)


class FleetRow(NamedTuple):
    """A unit, who has it, and what it is.

    A device without units has one row without ``unit``. ``state`` is the word
    of a state of :data:`nova_accel.model.units.unit_state.MEANINGS`. ``why``
    says more of it, empty where there is no more to say. ``is_alarm`` says
    that somebody should look at it: what an administrator wants is none, and
    a unit that is being cleaned neither.
    """

    device: fleet_sources.FleetDevice
    unit: fleet_sources.FleetUnit | None
    state: str
    why: str
    is_alarm: bool
    server: fleet_sources.FleetServer | None

    @property
    def arq(self) -> fleet_sources.FleetArq | None:
        return None if self.unit is None else self.unit.arq


class Fleet(NamedTuple):
    """All hosts, the rows of each, and where the sources disagree.

    ``compared`` is where the sources disagree; ``is_placement_asked`` says
    whether Placement is one of them. ``reported`` is what the hosts themselves
    have found.
    """

    hosts: tuple[fleet_sources.FleetHost, ...]
    rows: tuple[FleetRow, ...]
    compared: tuple[finding.Finding, ...]
    is_placement_asked: bool
    reported: tuple[finding.Finding, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether sources disagree, or a host has not repaired a finding."""
        return bool(self.compared) or not all(
            found.is_repaired for found in self.reported
        )

    def of_host(self, hostname: str) -> 'Fleet':
        """The part of one host.

        :raises NotFound: nothing is known of it
        """
        of_host = self._replace(
            hosts=tuple(each for each in self.hosts if each.name == hostname),
            rows=tuple(
                row for row in self.rows if row.device.hostname == hostname
            ),
            compared=_of_host(self.compared, hostname),
            reported=_of_host(self.reported, hostname),
        )
        if not (of_host.hosts or of_host.compared):
            raise exceptions.NotFound(
                f'Host {hostname} not found: it has never reported its devices'
            )
        return of_host


def _of_host(
    findings: Iterable[finding.Finding], hostname: str
) -> tuple[finding.Finding, ...]:
    return tuple(each for each in findings if each.hostname == hostname)


def join(
    ours: fleet_sources.Ours,
    nova: fleet_sources.NovaReading,
    placement: fleet_sources.Placement | None = None,
) -> Fleet:
    """The fleet, sorted by host, device and unit.

    :param placement: None if Placement was not asked
    """
    hosts = {host.name: host for host in ours.hosts}
    units = by_device(ours.units)
    rows = []
    for device in sorted(
        ours.devices, key=lambda device: (device.hostname, device.name)
    ):
        host = hosts.get(device.hostname) or fleet_sources.FleetHost(
            device.hostname, device.hostname, is_silent=True
        )
        of_device = sorted(units.get(device.uuid, ()), key=_place)
        contents = contents_of(of_device)
        rows += [
            _row(device, unit, contents, host, nova.servers)
            for unit in of_device
        ] or [_bare(device, host)]
    return Fleet(
        tuple(sorted(ours.hosts)),
        tuple(rows),
        tuple(fleet_comparison.compare(ours, nova, placement)),
        placement is not None,
        tuple(finding_places.place(ours)),
    )


def by_device(
    units: Iterable[fleet_sources.FleetUnit],
) -> dict[str, list[fleet_sources.FleetUnit]]:
    """The uuid of a device -> its units."""
    found: dict[str, list[fleet_sources.FleetUnit]] = {}
    for unit in units:
        found.setdefault(unit.device_uuid, []).append(unit)
    return found


def _place(unit: fleet_sources.FleetUnit) -> tuple[str, str, str]:
    return unit.part, unit.address, unit.uuid


def _row(
    device: fleet_sources.FleetDevice,
    unit: fleet_sources.FleetUnit,
    contents: str,
    host: fleet_sources.FleetHost,
    servers: Mapping[str, fleet_sources.FleetServer],
) -> FleetRow:
    state, why = state_of_unit(unit, contents, host)
    server = None
    if unit.arq is not None and unit.arq.instance_uuid is not None:
        server = servers.get(unit.arq.instance_uuid)
    return FleetRow(
        device, unit, word_of(state), why, state in _ALARMS, server
    )


def word_of(state: unit_state.UnitState) -> str:
    """The word of a state in the fleet."""
    return unit_state.MEANINGS[state].shown


def contents_of(of_device: Iterable[fleet_sources.FleetUnit]) -> str:
    """The parts of a device that ARQs have, in words; empty if there is none.

    :param of_device: all its units
    """
    taken = collections.Counter(
        each.part for each in of_device if each.arq is not None
    )
    return ', '.join(f'{taken[part]} {part}' for part in sorted(taken))


def state_of_unit(
    unit: fleet_sources.FleetUnit,
    contents: str,
    host: fleet_sources.FleetHost,
) -> tuple[unit_state.UnitState, str]:
    """As :func:`state_of`; if others exclude the unit, it says which.

    :param contents: those of its device
    """
    state, why = state_of(unit.condition, unit.arq is not None, host)
    if state is _State.EXCLUDED and contents:
        why = f'its card has {contents}'
    return state, why


def state_of(
    condition: unit_state.Condition,
    is_held: bool,
    host: fleet_sources.FleetHost,
) -> tuple[unit_state.UnitState, str]:
    """The state of a unit, and more of it, empty if there is no more to say.

    :param is_held: whether an ARQ has it
    :param host: the one that it is on
    """
    is_disabled = condition.reason([_State.DISABLED]) is not None
    why = condition.reason() or ''
    if is_disabled and host.drain is not None:
        why = host.drain.words
    if host.is_away and is_disabled and not is_held:
        # It may be off, as no one needs it.
        return _State.DISABLED, f'{why}; it is silent'
    state = dataclasses.replace(
        condition, is_held=is_held, is_silent=host.is_silent
    ).state(_SHOWN)
    if state in (_State.HOST_SILENT, _State.GONE):
        why = unit_state.MEANINGS[state].text
    elif state is _State.FAULTY:
        why = condition.fault or ''
    return state, why


def _bare(
    device: fleet_sources.FleetDevice, host: fleet_sources.FleetHost
) -> FleetRow:
    """The row of a device of which nothing can be handed out."""
    state, why = state_of(
        unit_state.Condition(status=device.status, fault=device.fault),
        False,
        host,
    )
    word = word_of(state)
    if state is _State.FREE:
        word, why = word_of(_State.HOST_SILENT), 'it has no units'
    return FleetRow(device, None, word, why, state in _ALARMS, None)
