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

"""``openstack accelerator device profile explain``."""

import argparse
from collections.abc import Iterator
from typing import Any
from urllib import parse

from osc_lib.command import command

from nova_accel.model import reason
from nova_accel.osc import accelerator_calls

#: The microversion from which on an explanation has pages.
_MICROVERSION = '2.8'

COLUMNS = (
    'Group',
    'Host',
    'Resource provider',
    'Class',
    'Total',
    'Free',
    'Why it cannot serve the group',
)

_Row = tuple[int, str, str, str, int, int, str]


class Explain(command.Lister):
    """Show which hosts could serve a device profile, and why others cannot.

    The groups are counted from zero. The last column is empty for a resource
    provider that can serve the group now.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'profile',
            metavar='<profile>',
            help='the name or uuid of the device profile',
        )
        parser.add_argument(
            '--host',
            metavar='<hostname>',
            help="show one host, by Nova's name of the hypervisor",
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[_Row]]:
        query = (
            {} if parsed_args.host is None else {'hostname': parsed_args.host}
        )
        return COLUMNS, _rows(
            accelerator_calls.pages(
                accelerator_calls.client_of(self.app),
                f'/device_profiles/{parse.quote(parsed_args.profile, "")}'
                '/explain',
                'explain',
                query,
                _MICROVERSION,
            )
        )


def _rows(pages: Iterator[Any]) -> Iterator[_Row]:
    """The providers in the order of hosts, each with all groups."""
    for page in pages:
        yield from sorted(
            (
                (
                    group['device_profile_group_id'],
                    reason.printable(provider['hostname']),
                    provider['uuid'],
                    provider['resource_class'],
                    provider['total'],
                    provider['free'],
                    reason.printable('; '.join(provider['reasons'])),
                )
                for group in page['groups']
                for provider in group['resource_providers']
            ),
            key=lambda row: (*row[1:4], row[0]),
        )
