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

"""``nova-accel-manage host``: the hosts that have reported accelerators."""

import argparse
from collections.abc import Iterator
import datetime
from typing import Any

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import own_providers
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.overview import printing

CONF = conf.CONF

COLUMNS = (
    'Host',
    'Compute service',
    'State',
    'Last report (UTC)',
    'Devices',
    'Units',
    'Drained for',
)


class _OfHost(printing.Command):
    """A command that names one host."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'hostname',
            metavar='<hostname>',
            help="Nova's name of the hypervisor",
        )
        return parser


class Forget(_OfHost):
    """Delete the devices and ARQs of a host that will not come back.

    This is refused while the host reports, and while a server is on it or
    moves from or to it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='delete nothing, and say what would be deleted, or refused',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        cells.connect()
        deleted = forget(parsed_args.hostname, parsed_args.dry_run)
        done = 'would be deleted' if parsed_args.dry_run else 'deleted'
        for name, amount in deleted.items():
            self.print_line(f'{amount} {name} {done}')


class List(printing.Lister):
    """Show the hosts that have reported, and what they have.

    A host is silent if its last report is older than [nova_accel]
    host_silence_s.
    """

    nothing = 'No host has reported devices.'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        return COLUMNS, (
            (
                each['hostname'],
                each['service_host'],
                'silent' if each['is_silent'] else 'reports',
                each['reported_at'].isoformat(' ', 'seconds'),
                each['devices'],
                each['units'],
                _drain(each['drain_reason'], each['announced_for']),
            )
            for each in host.get_summaries(CONF.nova_accel.host_silence_s)
        )


def _drain(reason: str | None, start: datetime.datetime | None) -> str:
    if start is None:
        return reason or ''
    return f'from {start:%Y-%m-%d %H:%M} UTC: {reason}'


class Remove(_OfHost):
    """Remove nova_accel from a host that stays a compute host.

    Set the host's compute_driver back to Nova's own first. This is refused
    while the host reports, and while servers have accelerators of it.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        cells.connect()
        providers, deleted = remove(parsed_args.hostname)
        for name in providers:
            self.print_line(f'{name} deleted in Placement')
        for name, amount in deleted.items():
            self.print_line(f'{amount} {name} deleted')
        self.print_line(
            'Not removed: the directory nova_accel below state_path of the '
            'host, its options in nova.conf, virtual functions that were '
            'made, and the contents of FPGAs'
        )


def remove(hostname: str) -> tuple[list[str], dict[str, int]]:
    """Delete a host here and in Placement, if no server uses its devices.

    :returns: the names of deleted providers; table -> number of deleted rows
    :raises NotFound: it has never reported
    :raises Conflict: it reports, or names the servers that are in the way;
        nothing is deleted
    :raises ServiceUnavailable: Placement gave no usable answer; repeating the
        call continues
    :raises ConfigurationError: Nova knows of no cell.
    """
    silence_s = CONF.nova_accel.host_silence_s
    _check_unused(hostname)
    providers = own_providers.remove(host.get_silent_node(hostname, silence_s))
    return providers, host.forget(hostname, silence_s)


def forget(hostname: str, is_dry_run: bool = False) -> dict[str, int]:
    """Delete a host, unless a server may need its accelerators.

    :param is_dry_run: whether nothing is deleted after all
    :returns: table -> number of deleted rows
    :raises NotFound: it has never reported
    :raises Conflict: it reports, or names the servers that are in the way
    :raises ConfigurationError: Nova knows of no cell.
    """
    _check_unused(hostname)
    return host.forget(hostname, CONF.nova_accel.host_silence_s, is_dry_run)


def _check_unused(hostname: str) -> None:
    """:raises Conflict: servers may need it; the text names them."""
    silence_s = CONF.nova_accel.host_silence_s
    service_hosts = {
        each['hostname']: each['service_host']
        for each in host.get_all(silence_s)
    }
    uuids = {
        each['instance_uuid'] for each in host_arqs.get_of_hosts([hostname])
    }
    there = sorted(
        uuid
        for uuid, server in cells.servers(uuids).items()
        if server.host == service_hosts.get(hostname)
        or server.is_busy
        or server.is_migrating
    )
    if there:
        raise exceptions.Conflict(
            f'host {hostname} has accelerators of servers that are still '
            f'there, or are migrating: {", ".join(there)}. Evacuate or '
            'delete them, or end their migrations'
        )
