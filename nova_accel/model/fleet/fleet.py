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

from collections.abc import Mapping
import enum
from typing import NamedTuple

from nova_accel.model import hardware
from nova_accel.model import usability
from nova_accel.model.fleet import fleet_drift
from nova_accel.model.fleet import fleet_findings
from nova_accel.model.fleet import fleet_sources


class State(enum.StrEnum):
    """The state of a unit in one word."""

    #: A server has it.
    USED = 'used'
    #: The next server can have it.
    FREE = 'free'
    #: An administrator has disabled its device, or drains its host.
    DRAINED = 'drained'
    #: It is to be cleaned, or that has failed.
    UNCLEAN = 'unclean'
    #: Its host finds its device sick.
    FAULTY = 'faulty'
    #: Its host is silent, or names no units of the device.
    UNKNOWN = 'unknown'
    #: Its host does not find it any more.
    GONE = 'gone'


class Row(NamedTuple):
    """A unit, who has it, and what it is.

    A device without units has one row without ``unit``. ``why`` says more of
    the state, empty where there is no more to say. ``is_alarm`` says that
    somebody should look at it: what an administrator wants is none, and a unit
    that is being cleaned neither.
    """

    device: fleet_sources.Device
    unit: fleet_sources.Unit | None
    state: State
    why: str
    is_alarm: bool
    server: fleet_sources.Server | None

    @property
    def arq(self) -> fleet_sources.Arq | None:
        return None if self.unit is None else self.unit.arq


class Fleet(NamedTuple):
    """All hosts, the rows of each, and where the sources disagree.

    ``is_placement_asked`` says whether the drift has what Placement counts.
    ``findings`` are what the hosts themselves have found amiss.
    """

    hosts: tuple[fleet_sources.Host, ...]
    rows: tuple[Row, ...]
    drifts: tuple[fleet_drift.Drift, ...]
    is_placement_asked: bool
    findings: tuple[fleet_findings.Finding, ...] = ()

    @property
    def is_amiss(self) -> bool:
        """Whether sources disagree, or a host has not repaired a finding."""
        return bool(self.drifts) or not all(
            found.what.is_repaired for found in self.findings
        )


def join(
    ours: fleet_sources.Ours,
    nova: fleet_sources.Nova,
    placement: fleet_sources.Placement | None = None,
) -> Fleet:
    """The fleet, sorted by host, device and unit.

    :param placement: None if Placement was not asked
    """
    hosts = {host.name: host for host in ours.hosts}
    units: dict[str, list[fleet_sources.Unit]] = {}
    for unit in ours.units:
        units.setdefault(unit.device_uuid, []).append(unit)
    rows = []
    for device in sorted(
        ours.devices, key=lambda device: (device.hostname, device.name)
    ):
        host = hosts.get(device.hostname) or fleet_sources.Host(
            device.hostname, device.hostname, is_silent=True
        )
        rows += [
            _row(device, unit, host, nova.servers)
            for unit in sorted(units.get(device.uuid, ()), key=_place)
        ] or [_bare(device, host)]
    return Fleet(
        tuple(sorted(ours.hosts)),
        tuple(rows),
        tuple(fleet_drift.find(ours, nova, placement)),
        placement is not None,
        tuple(fleet_findings.find(ours)),
    )


def _place(unit: fleet_sources.Unit) -> tuple[str, str, str]:
    return unit.part, unit.address, unit.uuid


def _row(
    device: fleet_sources.Device,
    unit: fleet_sources.Unit,
    host: fleet_sources.Host,
    servers: Mapping[str, fleet_sources.Server],
) -> Row:
    state, why = state_of(unit.condition, unit.arq is not None, host)
    return Row(
        device,
        unit,
        state,
        why,
        state in (State.FAULTY, State.UNKNOWN, State.GONE)
        or (
            state is State.UNCLEAN
            and unit.condition.unclean_reason is not None
        ),
        (
            None
            if unit.arq is None or unit.arq.instance_uuid is None
            else servers.get(unit.arq.instance_uuid)
        ),
    )


def state_of(
    condition: usability.Condition, is_held: bool, host: fleet_sources.Host
) -> tuple[State, str]:
    """The state of a unit, and more of it, empty if there is no more to say.

    :param is_held: whether an ARQ has it
    :param host: the one that it is on
    """
    is_disabled = condition.status != hardware.Status.ENABLED
    why = condition.reason or ''
    if is_disabled and host.drain is not None:
        why = host.drain.words
    if host.is_away and is_disabled and not is_held:
        # It may be off, as nobody needs it.
        return State.DRAINED, f'{why}; it is silent'
    if host.is_silent:
        return State.UNKNOWN, 'its host is silent'
    if not condition.is_present:
        return State.GONE, 'gone from its host'
    if condition.fault is not None:
        return State.FAULTY, condition.fault
    if is_held:
        return State.USED, why
    if is_disabled:
        return State.DRAINED, why
    if not condition.is_clean:
        return State.UNCLEAN, why
    return State.FREE, why


def _bare(device: fleet_sources.Device, host: fleet_sources.Host) -> Row:
    """The row of a device of which nothing can be handed out."""
    state, why = state_of(
        usability.Condition(True, device.status, device.fault, True, None),
        False,
        host,
    )
    is_alarm = state in (State.UNKNOWN, State.FAULTY)
    if state is State.FREE:
        state, why = State.UNKNOWN, 'it has no units'
    return Row(device, None, state, why, is_alarm, None)
