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

"""The database's view of the fleet as the REST API sends it."""

from collections.abc import Iterable
from collections.abc import Mapping
import datetime
from typing import Any

from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import host_drain
from nova_accel.model.units import unit_state

_Json = dict[str, Any]

#: The host has the name of a device's host, and a device has its units.
_OF_DEVICE = tuple(
    field for field in fleet_sources.FleetDevice._fields if field != 'hostname'
)


def to_json(ours: fleet_sources.Ours) -> list[_Json]:
    """The hosts, with their devices and units.

    A host that has ARQs and has never reported has no ``service_host``.
    """
    found: dict[str, _Json] = {}
    for host in ours.hosts:
        found[host.name] = _host(
            host.name, host.service_host, host.is_silent, host.drain
        )
    devices: dict[str, _Json] = {}
    for device in ours.devices:
        # It may have come after its host was read.
        if device.hostname in found:
            devices[device.uuid] = _device(device)
            found[device.hostname]['devices'].append(devices[device.uuid])
    hosts = {host.name: host for host in ours.hosts}
    of_device = {device.uuid: device for device in ours.devices}
    for uuid, units in fleet.by_device(ours.units).items():
        if uuid in devices:
            host = hosts[of_device[uuid].hostname]
            contents = fleet.contents_of(units)
            devices[uuid]['units'] = [
                _unit(unit, contents, host) for unit in units
            ]
    for arq in ours.unheld:
        if arq.hostname is not None:
            found.setdefault(
                arq.hostname, _host(arq.hostname, None, True, None)
            )['unheld'].append(arq._asdict())
    for each in ours.findings:
        if each.hostname is not None and each.hostname in found:
            found[each.hostname]['findings'].append(
                {
                    **each.to_dict(),
                    'since': each.since and each.since.isoformat(),
                    'remedy': each.remedy,
                }
            )
    return list(found.values())


def _host(
    name: str,
    service_host: str | None,
    is_silent: bool,
    drain: host_drain.HostDrain | None,
) -> _Json:
    return {
        'hostname': name,
        'service_host': service_host,
        'is_silent': is_silent,
        'drain': None if drain is None else drain.to_dict(),
        'devices': [],
        'unheld': [],
        'findings': [],
    }


def _device(device: fleet_sources.FleetDevice) -> _Json:
    return {
        **{field: getattr(device, field) for field in _OF_DEVICE},
        'units': [],
    }


def _unit(
    unit: fleet_sources.FleetUnit,
    contents: str,
    host: fleet_sources.FleetHost,
) -> _Json:
    state, why = fleet.state_of_unit(unit, contents, host)
    return {
        'uuid': unit.uuid,
        'part': unit.part,
        'resource_class': unit.resource_class,
        'rp_uuid': unit.rp_uuid,
        'address': unit.address,
        'state': fleet.word_of(state),
        'why': why,
        'is_present': unit.condition.is_present,
        'is_clean': unit.condition.is_clean,
        'unclean_reason': unit.condition.unclean_reason,
        'has_room': unit.condition.has_room,
        'arq': None if unit.arq is None else unit.arq._asdict(),
    }


def from_json(hosts: Iterable[Mapping[str, Any]]) -> fleet_sources.Ours:
    """The view that was sent, whatever a newer API has added to it.

    :raises ValueError: it is none.
    """
    try:
        return _parse(hosts)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f'no view of the fleet: {error!r}') from error


def _parse(hosts: Iterable[Mapping[str, Any]]) -> fleet_sources.Ours:
    reported: list[fleet_sources.FleetHost] = []
    devices: list[fleet_sources.FleetDevice] = []
    units: list[fleet_sources.FleetUnit] = []
    unheld: list[fleet_sources.FleetArq] = []
    findings: list[finding.Finding] = []
    for host in hosts:
        name = host['hostname']
        if host['service_host'] is not None:
            reported.append(
                fleet_sources.FleetHost(
                    name,
                    host['service_host'],
                    host['is_silent'],
                    None
                    if host['drain'] is None
                    else host_drain.from_dict(host['drain']),
                )
            )
        for told in host['devices']:
            fields = {field: told[field] for field in _OF_DEVICE}
            fields['link_sets'] = tuple(fields['link_sets'])
            device = fleet_sources.FleetDevice(hostname=name, **fields)
            devices.append(device)
            units += [_parse_unit(device, unit) for unit in told['units']]
        unheld += map(_parse_arq, host['unheld'])
        findings += [
            finding.from_dict(
                told, name, datetime.datetime.fromisoformat(told['since'])
            )
            for told in host['findings']
        ]
    return fleet_sources.Ours(reported, devices, units, unheld, findings)


def _parse_unit(
    device: fleet_sources.FleetDevice, told: Mapping[str, Any]
) -> fleet_sources.FleetUnit:
    return fleet_sources.FleetUnit(
        told['uuid'],
        device.uuid,
        told['part'],
        told['resource_class'],
        told['rp_uuid'],
        told['address'],
        unit_state.Condition(
            told['is_present'],
            device.status,
            device.fault,
            told['is_clean'],
            told['unclean_reason'],
            told['has_room'],
        ),
        None if told['arq'] is None else _parse_arq(told['arq']),
    )


def _parse_arq(told: Mapping[str, Any]) -> fleet_sources.FleetArq:
    """:raises ValueError: it has an unknown role."""
    if told['role'] is not None:
        arq_types.Role(told['role'])
    return fleet_sources.FleetArq(
        **{field: told[field] for field in fleet_sources.FleetArq._fields}
    )
