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

"""``openstack accelerator device holder list``."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from urllib import parse

from nova_accel.model.fleet import fleet
from nova_accel.osc import accelerator_calls
from nova_accel.osc import api_fleet
from nova_accel.overview import columns
from nova_accel.overview import commands
from nova_accel.overview import printing
from nova_accel.overview import reading

_OF_UNITS = {name: get for name, (_key, get) in columns.UNITS.items()}

#: The columns; the short list has the first ones.
COLUMNS: dict[str, Callable[[fleet.FleetRow], Any]] = {
    **{
        name: _OF_UNITS[name]
        for name in (
            'Host',
            'Device',
            'Part',
            'State',
            'Server',
            'Server name',
            'Project',
            'Flavor',
        )
    },
    'Role': lambda row: row.arq and row.arq.role,
    **{
        name: _OF_UNITS[name]
        for name in ('Product', 'Device uuid', 'Unit', 'ARQ', 'Image')
    },
}

_SHORT = 9


class List(printing.Lister):
    """Show which servers have units of a device, or of all devices.

    A server that moves has units on two hosts, each with a role of its own.
    """

    nothing = 'No server has any of these units.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'device',
            nargs='?',
            metavar='<device>',
            help='the uuid of the device, by default all',
        )
        commands.add_host(parser)
        parser.add_argument(
            '--long',
            action='store_true',
            help='show all columns, with the uuids of units',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        names = tuple(COLUMNS)[: None if parsed_args.long else _SHORT]
        return names, self._rows(names, parsed_args.device, parsed_args.host)

    def _rows(
        self, names: Iterable[str], device: str | None, hostname: str | None
    ) -> Iterator[tuple[Any, ...]]:
        uuid = None
        if device is not None:
            found = accelerator_calls.call(
                accelerator_calls.client_of(self.app),
                'GET',
                f'/devices/{parse.quote(device, "")}',
            )
            uuid, hostname = found['uuid'], hostname or found['hostname']
        for row in reading.glance(api_fleet.Sources(self.app, hostname)).rows:
            if row.arq is not None and uuid in (None, row.device.uuid):
                yield tuple(columns.cell(COLUMNS[name](row)) for name in names)
