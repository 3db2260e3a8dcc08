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


"""``nova-accel-manage fleet``: who has which part of which device."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
import datetime
import json
import pathlib
from typing import Any

from cliff import command
from cliff import lister

from nova_accel.cmd import cells
from nova_accel.cmd import fleet_map
from nova_accel.cmd import fleet_reading
from nova_accel.model import fleet
from nova_accel.model import fleet_drift
from nova_accel.model import fleet_findings
from nova_accel.model import reason
from nova_accel.state import durable_file

#: The columns of units, each with its key in JSON; the short list has the
#: first ones.
COLUMNS: dict[str, tuple[str, Callable[[fleet.Row], Any]]] = {
    'Host': ('host', lambda row: row.device.hostname),
    'Device': ('device', lambda row: row.device.address),
    'Product': ('product', lambda row: row.device.product),
    'Part': ('part', lambda row: row.unit and row.unit.part),
    'State': ('state', lambda row: str(row.state)),
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
    'Image': ('image', lambda row: (row.server and row.server.image) or None),
}

_SHORT = 8

DRIFT_COLUMNS = ('What', 'Host', 'Whose', 'One says', 'But', 'Remedy')

#: The exit status if the fleet could not be read.
UNKNOWN = 2


class _OfFleet(command.Command):
    """A command that reads the whole fleet."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--placement',
            action='store_true',
            help=(
                'ask Placement too, one request for each resource provider '
                'of ours'
            ),
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            cells.connect()
            return self.run_on(
                fleet_reading.read(parsed_args.placement), parsed_args
            )
        except Exception as error:
            if self.app.options.debug:
                raise
            self.app.stderr.write(f'{error}\n')
            return UNKNOWN

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        """:returns: the exit status"""
        raise NotImplementedError


class List(_OfFleet, lister.Lister):
    """Show all units, with the servers that have them.

    The exit status is 2 if the fleet could not be read. With --drift it is 1
    if sources disagree, or a host has found what it has not repaired.
    """

    _found: fleet.Fleet

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--drift',
            action='store_true',
            help=(
                'show where the sources disagree instead, and what hosts have '
                'found amiss, with remedies'
            ),
        )
        parser.add_argument(
            '--long', action='store_true', help='show all columns, with uuids'
        )
        parser.add_argument(
            '--json',
            action='store_true',
            help=(
                'print one JSON object with all units, all drift and all '
                'findings'
            ),
        )
        return parser

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        self._found = found
        if parsed_args.json:
            json.dump(document(found), self.app.stdout, indent=1)
            self.app.stdout.write('\n')
        else:
            lister.Lister.run(self, parsed_args)
        return 1 if parsed_args.drift and found.is_amiss else 0

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]:
        if parsed_args.drift:
            return DRIFT_COLUMNS, (
                tuple(map(_shown, shown.values()))
                for shown in (
                    *map(_drift, self._found.drifts),
                    *map(_finding, self._found.findings),
                )
            )
        names = tuple(COLUMNS)[: None if parsed_args.long else _SHORT]
        getters = [COLUMNS[name][1] for name in names]
        return names, (
            tuple(_shown(get(row)) for get in getters)
            for row in self._found.rows
        )


class Map(_OfFleet):
    """Draw a map of all units into one HTML file, for any browser.

    The file needs neither a network nor scripts. It names tenants' servers:
    only its owner can read it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--output',
            required=True,
            type=pathlib.Path,
            metavar='<path>',
            help='the file; one that exists is replaced as a whole',
        )
        return parser

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        durable_file.write(
            parsed_args.output,
            fleet_map.draw(found, datetime.datetime.now(datetime.UTC)),
        )
        return 0

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Everything is done in :meth:`run_on`."""


def document(found: fleet.Fleet) -> dict[str, Any]:
    """The fleet as plain JSON."""
    return {
        'is_placement_asked': found.is_placement_asked,
        'hosts': [
            {
                'name': host.name,
                'service_host': host.service_host,
                'is_silent': host.is_silent,
            }
            for host in found.hosts
        ],
        'units': [
            {key: get(row) for key, get in COLUMNS.values()}
            for row in found.rows
        ],
        'drift': [
            {
                **_drift(drift),
                'devices': list(drift.devices),
                'units': list(drift.units),
            }
            for drift in found.drifts
        ],
        'findings': [
            {
                'kind': each.what.kind,
                'host': each.hostname,
                'server': each.what.instance_uuid,
                'device': each.what.device,
                'words': each.what.words,
                'is_repaired': each.what.is_repaired,
                'since': each.since.isoformat(),
                'remedy': each.what.remedy,
                'devices': list(each.devices),
            }
            for each in found.findings
        ],
    }


def _drift(drift: fleet_drift.Drift) -> dict[str, str | None]:
    return {
        'what': str(drift.kind),
        'host': drift.hostname,
        'whose': drift.whose,
        'says': drift.says,
        'but': drift.but,
        'remedy': drift.remedy,
    }


def _finding(found: fleet_findings.Finding) -> dict[str, str | None]:
    return {
        'what': found.what.kind,
        'host': found.hostname,
        'whose': found.whose,
        'says': found.what.words,
        'but': found.outcome,
        'remedy': found.what.remedy,
    }


def _shown(value: Any) -> Any:
    """A value for a terminal, to which a device's words are not trusted."""
    if value is None:
        return ''
    return reason.printable(value) if isinstance(value, str) else value
