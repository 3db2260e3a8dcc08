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

"""``openstack accelerator device profile`` of ours."""

import argparse
import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from urllib import parse

from osc_lib import exceptions
from osc_lib.cli import parseractions

from nova_accel.osc import accelerator_calls
from nova_accel.osc import host_places
from nova_accel.osc import nova_calls
from nova_accel.overview import explaining
from nova_accel.overview import printing

#: Hosts that are in no aggregate, or that Nova does not know.
_NO_PLACE = '(none)'


def _path(profile: str) -> str:
    return f'/device_profiles/{parse.quote(profile, "")}'


class Set(printing.ShowOne):
    """Change what a device profile asks for, or its description.

    Servers keep the accelerators that they have. A warning says which part of
    the profile no host has.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'profile',
            metavar='<profile>',
            help='the name or uuid of the device profile',
        )
        parser.add_argument(
            '--group',
            metavar='<key=value,...>',
            action=parseractions.MultiKeyValueAction,
            help=(
                'a group in place of all present ones, such as '
                'resources:FPGA=1,trait:CUSTOM_FPGA_INTEL=required; may be '
                'given several times'
            ),
        )
        parser.add_argument(
            '--description', metavar='<text>', help='the new description'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        groups, description = parsed_args.group, parsed_args.description
        if groups is None and description is None:
            raise exceptions.CommandError(
                'Nothing is to change: give --group or --description'
            )
        client = accelerator_calls.client_of(self.app)
        present = accelerator_calls.call(
            client, 'GET', _path(parsed_args.profile)
        )['device_profile']
        changed = accelerator_calls.call(
            client,
            'PUT',
            _path(present['uuid']),
            warn=self.warn,
            json={
                'name': present['name'],
                'groups': present['groups'] if groups is None else groups,
                'description': (
                    present['description']
                    if description is None
                    else description
                ),
            },
        )
        names = ('uuid', 'name', 'groups', 'description')
        return names, tuple(changed[name] for name in names)


class Availability(explaining.OfProfile):
    """Show how many servers with a device profile could start now.

    Only their accelerators are counted. Administrators see exact numbers, on
    which hosts, and why other units are not free. Others see about how many
    within the quota of their project.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--by',
            choices=[str(place) for place in host_places.Places],
            default=str(host_places.Places.HOST),
            help=(
                'show the servers of each host, availability zone or host '
                'aggregate (default: host)'
            ),
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[str, str, str]]]:
        found = accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'GET',
            f'{_path(parsed_args.profile)}/availability',
        )['availability']
        least, most = found['min_servers'], found['max_servers']
        total = (
            f'{least} or more'
            if most is None
            else f'{least}'
            if least == most
            else f'{least} to {most}'
        )
        if found['is_limited_by_quota']:
            total += ', as the quota says'
        why = found['obstacle'] or ', '.join(
            f'{each["units"]} {each["resource_class"]} {each["reason"]}'
            for each in found.get('not_free', ())
        )
        drain_ends_at = found.get('drain_ends_at')
        if drain_ends_at is not None:
            end = f'a drain is planned to end at {drain_ends_at}'
            why = f'{why}; {end}' if why else end
        hosts = {
            each['hostname']: each['servers']
            for each in found.get('hosts', ())
        }
        by = host_places.Places(parsed_args.by)
        return (by.capitalize(), 'Servers', 'Why not more'), [
            *(
                (place, str(servers), '')
                for place, servers in self._in_places(hosts, by)
            ),
            ('all', total, why),
        ]

    def _in_places(
        self, hosts: Mapping[str, int], by: host_places.Places
    ) -> list[tuple[str, int]]:
        """Each place with its servers; a host is in any number of places."""
        if by is host_places.Places.HOST or not hosts:
            return sorted(hosts.items())
        places = host_places.of_hypervisors(nova_calls.client_of(self.app), by)
        servers: collections.Counter[str] = collections.Counter()
        for hostname, amount in hosts.items():
            for place in places.get(hostname) or [_NO_PLACE]:
                servers[place] += amount
        return sorted(servers.items())


class Explain(explaining.Explain):
    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[explaining.Row]]:
        for page in accelerator_calls.pages(
            accelerator_calls.client_of(self.app),
            f'{_path(profile)}/explain',
            'explain',
            {} if hostname is None else {'hostname': hostname},
        ):
            yield [
                explaining.nothing(
                    group['device_profile_group_id'],
                    (
                        key.removeprefix('resources:')
                        for key in group['group']
                        if key.startswith('resources:')
                    ),
                )
                for group in page['groups']
                if not group['resource_providers']
            ]
            yield (
                (
                    group['device_profile_group_id'],
                    provider['hostname'],
                    explaining.devices(provider['device_addresses']),
                    provider['uuid'],
                    provider['resource_class'],
                    provider['total'],
                    provider['free'],
                    '; '.join(provider['reasons']),
                )
                for group in page['groups']
                for provider in group['resource_providers']
            )
