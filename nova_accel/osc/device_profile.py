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

"""``openstack accelerator device profile`` ``availability``, ``explain``."""

import argparse
import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from urllib import parse

from nova_accel.osc import accelerator_calls
from nova_accel.osc import host_places
from nova_accel.osc import nova_calls
from nova_accel.overview import explaining

#: Hosts that are in no aggregate, or that Nova does not know.
_NO_PLACE = '(none)'


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
            f'/device_profiles/{parse.quote(parsed_args.profile, "")}'
            '/availability',
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
            f'/device_profiles/{parse.quote(profile, "")}/explain',
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
