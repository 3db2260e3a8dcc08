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

"""``openstack accelerator server ...``."""

import argparse
from collections.abc import Callable
from typing import Any

from nova_accel.osc import accelerator_calls
from nova_accel.osc import nova_servers
from nova_accel.overview import printing

#: Column -> its value in an accelerator of the answer.
_COLUMNS: dict[str, Callable[[dict[str, Any]], Any]] = {
    'ARQ': lambda found: found['arq'],
    'Device profile': lambda found: found['device_profile_name'],
    'Group': lambda found: found['device_profile_group_id'],
    'Resource class': lambda found: found['resource_class'],
    'State': lambda found: found['state'],
    'Health': lambda found: found['health'],
    'Reason': lambda found: found['reason'],
    'Since': lambda found: found['since'],
    'Leaving': lambda found: found['is_leaving'],
    'Drained from': lambda found: _drain(found)['from'],
    'Drained until': lambda found: _drain(found)['until'],
    'Drain reason': lambda found: _drain(found)['reason'],
}

_NO_DRAIN = dict.fromkeys(('from', 'until', 'reason'))


class Show(printing.Lister):
    """Show whether the accelerators of a server work."""

    nothing = 'The server has no accelerators.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _of_a_server(super().get_parser(prog_name))

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        uuid = nova_servers.uuid_of(self.app, parsed_args.server)
        found = accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'GET',
            f'/servers/{uuid}/accelerators',
        )['accelerators']
        return tuple(_COLUMNS), [
            tuple(value(each) for value in _COLUMNS.values()) for each in found
        ]


class Replace(printing.Command):
    """Give a server other devices for those that have failed, and wait."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _of_a_server(super().get_parser(prog_name))
        parser.add_argument(
            '--accelerator',
            metavar='<uuid>',
            help=(
                'the uuid of the accelerator request whose device has failed, '
                'by default all of the server'
            ),
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        uuid = nova_servers.uuid_of(self.app, parsed_args.server)
        accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'POST',
            f'/servers/{uuid}/accelerators/replace',
            json={}
            if parsed_args.accelerator is None
            else {'arq': parsed_args.accelerator},
        )
        self.print_line(f'Server {parsed_args.server} has other devices now')


class _Change(printing.Command):
    """Changes the device profile of a server."""

    def _put(self, server: str, name: str | None, told: str) -> None:
        uuid = nova_servers.uuid_of(self.app, server)
        found = accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'PUT',
            f'/servers/{uuid}/accelerators',
            json={'device_profile': name},
        )['accelerators']
        self.print_line(f'Server {server} has {told} now')
        for each in found:
            if each['is_leaving']:
                self.print_line(
                    f'Its guest keeps {each["resource_class"]} of '
                    f'{each["arq"]} until it is stopped'
                )


class Set(_Change):
    """Give a server another device profile where it is, and wait."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = _of_a_server(super().get_parser(prog_name))
        parser.add_argument(
            '--device-profile',
            metavar='<name>',
            required=True,
            help='the name of the device profile',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        name = parsed_args.device_profile
        self._put(parsed_args.server, name, f'device profile {name}')


class Unset(_Change):
    """Take away the device profile of a server where it is, and wait."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return _of_a_server(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self._put(parsed_args.server, None, 'no device profile')


def _of_a_server(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        'server', metavar='<server>', help='the name or uuid of the server'
    )
    return parser


def _drain(found: dict[str, Any]) -> dict[str, Any]:
    return found['drain'] or _NO_DRAIN
