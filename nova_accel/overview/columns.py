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

"""The fleet as tables and as JSON."""

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from nova_accel.model import finding
from nova_accel.model.fleet import fleet

#: The columns of units, each with its key in JSON; the short list has the
#: first ones.
UNITS: dict[str, tuple[str, Callable[[fleet.FleetRow], Any]]] = {
    'Host': ('host', lambda row: row.device.hostname),
    'Device': ('device', lambda row: row.device.address),
    'Product': ('product', lambda row: row.device.product),
    'Part': ('part', lambda row: row.unit and row.unit.part),
    'State': ('state', lambda row: row.state),
    'Server name': ('server_name', lambda row: row.server and row.server.name),
    'Flavor': ('flavor', lambda row: row.server and row.server.flavor),
    'Why': ('why', lambda row: row.why or None),
    'Address': ('address', lambda row: row.unit and row.unit.address),
    'NUMA node': ('numa_node', lambda row: row.device.numa_node),
    'Class': (
        'resource_class',
        lambda row: row.unit and row.unit.resource_class,
    ),
    'Device uuid': ('device_uuid', lambda row: row.device.uuid),
    'Unit': ('unit', lambda row: row.unit and row.unit.uuid),
    'Resource provider': (
        'rp_uuid',
        lambda row: row.unit and row.unit.rp_uuid,
    ),
    'ARQ': ('arq', lambda row: row.arq and row.arq.uuid),
    'Server': ('server', lambda row: row.arq and row.arq.instance_uuid),
    'Project': ('project_id', lambda row: row.arq and row.arq.project_id),
    'Image': ('image', lambda row: (row.server and row.server.image) or None),
}

_SHORT = 8

#: The columns of findings.
FINDINGS = ('What', 'Host', 'Whose', 'One says', 'But', 'Remedy')


def names(is_long: bool) -> tuple[str, ...]:
    """The columns of the short or the long list of units."""
    return tuple(UNITS)[: None if is_long else _SHORT]


def rows(found: fleet.Fleet, is_long: bool) -> Iterator[tuple[Any, ...]]:
    """The rows of the list of units."""
    getters = [UNITS[name][1] for name in names(is_long)]
    for row in found.rows:
        yield tuple(cell(get(row)) for get in getters)


def finding_rows(found: fleet.Fleet) -> Iterator[tuple[Any, ...]]:
    """The rows of the list of findings; those of hosts come last."""
    for each in (*found.compared, *found.reported):
        yield tuple(map(cell, _row(each).values()))


def document(found: fleet.Fleet) -> dict[str, Any]:
    """The fleet as plain JSON."""
    return {
        'is_placement_asked': found.is_placement_asked,
        'hosts': [
            {
                'name': host.name,
                'service_host': host.service_host,
                'is_silent': host.is_silent,
                'drain': host.drain and host.drain.to_dict(),
            }
            for host in found.hosts
        ],
        'units': [
            {key: get(row) for key, get in UNITS.values()}
            for row in found.rows
        ],
        'drift': [
            {
                **_row(each),
                'devices': list(each.devices),
                'units': list(each.units),
            }
            for each in found.compared
        ],
        'findings': [
            {
                'kind': each.kind,
                'host': each.hostname,
                'server': each.instance_uuid,
                'device': each.device,
                'words': each.words,
                'is_repaired': each.is_repaired,
                'since': each.since and each.since.isoformat(),
                'remedy': each.remedy,
                'devices': list(each.devices),
            }
            for each in found.reported
        ],
    }


def _row(found: finding.Finding) -> dict[str, str | None]:
    return {
        'what': str(found.kind),
        'host': found.hostname,
        'whose': found.whose,
        'says': found.words,
        'but': found.outcome,
        'remedy': found.remedy,
    }


def cell(value: Any) -> Any:
    """A value in a table, which is empty where there is none."""
    return '' if value is None else value
