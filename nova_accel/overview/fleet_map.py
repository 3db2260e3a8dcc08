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


"""The map of the fleet: one HTML file without scripts.

Jinja2 escapes whatever tenants, devices and hosts have named.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import datetime
import itertools
from typing import NamedTuple

import jinja2

from nova_accel import reason
from nova_accel.model import finding
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet

#: The letter of a state beside its colour. The two states of a healthy fleet
#: have none.
LETTERS = {
    'used': '',
    'free': '',
    'excluded': 'X',
    'drained': 'D',
    'unclean': 'C',
    'faulty': 'F',
    'unknown': '?',
    'gone': 'G',
}

#: The bar of more units is too narrow for letters, and to point at one of
#: them: the table of the host has them large.
_LETTERED = 8


class Cell(NamedTuple):
    """A unit in the bar of its device."""

    state: str
    letter: str
    title: str


class MapDevice(NamedTuple):
    """A device, with a bar."""

    address: str
    product: str
    numa_node: str
    is_wrong: bool
    cells: list[Cell]
    states: str
    whys: list[str]
    findings: list[finding.Finding]
    servers: str

    @property
    def is_lettered(self) -> bool:
        return len(self.cells) <= _LETTERED


class MapHost(NamedTuple):
    """A host; ``words`` say what is to be looked at."""

    anchor: str
    name: str
    devices: list[MapDevice]
    used: str
    total: int
    words: list[str]
    products: str


class HostGroup(NamedTuple):
    """Hosts with the same products, at which no one has to look."""

    products: str
    hosts: list[MapHost]


class Total(NamedTuple):
    """The sums of one product and class."""

    product: str
    resource_class: str
    devices: int
    used_percent: int
    counts: list[int]


def draw(
    found: fleet.Fleet, now: datetime.datetime, title: str = 'Accelerators'
) -> str:
    """The map as HTML."""
    of_host: dict[str, list[fleet.FleetRow]] = {
        host.name: [] for host in found.hosts
    }
    for row in found.rows:
        of_host.setdefault(row.device.hostname, []).append(row)
    findings: dict[str | None, list[finding.Finding]] = {}
    for each in (*found.compared, *found.reported):
        if not each.is_repaired:
            findings.setdefault(each.hostname, []).append(each)
    silent = {
        host.name
        for host in found.hosts
        if host.is_silent and not host.is_away
    }
    hosts = [
        _host(
            f'h{number}',
            name,
            rows,
            findings.get(name, ()),
            name in silent,
        )
        for number, (name, rows) in enumerate(sorted(of_host.items()))
    ]
    return (
        _environment()
        .get_template('fleet_map.html')
        .render(
            title=title,
            now=now,
            fleet=found,
            devices=len({row.device.uuid for row in found.rows}),
            units=sum(row.unit is not None for row in found.rows),
            states=list(LETTERS.items()),
            totals=list(_totals(found.rows)),
            hosts=hosts,
            anchors={host.name: host.anchor for host in hosts},
            to_look_at=[host for host in hosts if host.words],
            groups=_groups(host for host in hosts if not host.words),
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader('nova_accel.overview'),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters['printable'] = reason.printable
    return environment


def _totals(rows: Iterable[fleet.FleetRow]) -> Iterator[Total]:
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    devices: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        key = (
            row.device.product,
            '' if row.unit is None else row.unit.resource_class,
        )
        devices.setdefault(key, set()).add(row.device.uuid)
        counted = counts.setdefault(key, collections.Counter())
        if row.unit is not None:
            counted[row.state] += 1
    for key in sorted(counts):
        total = counts[key].total()
        yield Total(
            *key,
            devices=len(devices[key]),
            used_percent=(
                round(100 * counts[key]['used'] / total) if total else 0
            ),
            counts=[counts[key][state] for state in LETTERS],
        )


def _host(
    anchor: str,
    name: str,
    rows: Sequence[fleet.FleetRow],
    findings: Sequence[finding.Finding],
    is_silent: bool,
) -> MapHost:
    by_device: dict[str, list[fleet.FleetRow]] = {}
    for row in rows:
        by_device.setdefault(row.device.uuid, []).append(row)
    products = collections.Counter(
        some[0].device.product for some in by_device.values()
    )
    used = sum(row.state == 'used' for row in rows)
    return MapHost(
        anchor,
        name,
        [
            _device(some, [each for each in findings if uuid in each.devices])
            for uuid, some in by_device.items()
        ],
        '?' if is_silent else str(used),
        sum(row.unit is not None for row in rows),
        _words(rows, findings, is_silent),
        ', '.join(
            f'{amount} {product}'
            for product, amount in sorted(products.items())
        ),
    )


def _words(
    rows: Iterable[fleet.FleetRow],
    findings: Sequence[finding.Finding],
    is_silent: bool,
) -> list[str]:
    """The reasons to look at a host: findings, then states."""
    alarms = collections.Counter(row.state for row in rows if row.is_alarm)
    kinds = dict.fromkeys(found.kind for found in findings)
    if disagreement.Subject.GONE in kinds:
        del alarms['gone']
    return [
        *map(str, kinds),
        *(
            ['silent']
            if is_silent
            else [f'{alarms[state]} {state}' for state in sorted(alarms)]
        ),
    ]


def _device(
    rows: Sequence[fleet.FleetRow], findings: list[finding.Finding]
) -> MapDevice:
    device = rows[0].device
    states = collections.Counter(
        row.state if row.unit is not None else f'{row.state}, no units'
        for row in rows
    )
    return MapDevice(
        device.address,
        device.product,
        '' if device.numa_node is None else str(device.numa_node),
        bool(findings),
        [Cell(row.state, LETTERS[row.state], _title(row)) for row in rows],
        ', '.join(f'{amount} {state}' for state, amount in states.items()),
        list(dict.fromkeys(row.why for row in rows if row.why)),
        findings,
        ', '.join(
            dict.fromkeys(name for row in rows if (name := _server_name(row)))
        ),
    )


def _server_name(row: fleet.FleetRow) -> str:
    """The name of the server, its uuid if Nova does not know it."""
    if row.server is not None and row.server.name:
        return row.server.name
    return (row.arq and row.arq.instance_uuid) or ''


def _title(row: fleet.FleetRow) -> str:
    """All that is known of a unit, for the one who points at it."""
    lines = [f'{row.state}: {row.why}' if row.why else row.state]
    if row.unit is not None:
        lines.append(f'{row.unit.part} {row.unit.address}')
        lines.append(f'unit {row.unit.uuid}')
    else:
        lines.append(f'device {row.device.uuid}')
    if row.arq is not None:
        lines.append(f'ARQ {row.arq.uuid}')
        lines.append(
            f'server {_server_name(row)} {row.arq.instance_uuid or ""}'
        )
    if row.server is not None:
        lines.append(f'flavor {row.server.flavor}')
        if row.server.image:
            lines.append(f'image {row.server.image}')
    return '\n'.join(map(reason.printable, lines))


def _groups(hosts: Iterable[MapHost]) -> list[HostGroup]:
    return [
        HostGroup(products, list(some))
        for products, some in itertools.groupby(
            sorted(hosts, key=lambda host: (host.products, host.name)),
            key=lambda host: host.products,
        )
    ]
