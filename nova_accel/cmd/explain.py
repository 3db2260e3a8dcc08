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

"""``nova-accel-manage explain``: who could serve a device profile."""

import argparse
from collections.abc import Iterator

from cliff import lister

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import explanation as explanation_db
from nova_accel.model import device_profile
from nova_accel.model import explanation

#: How many hosts are read at a time.
PAGE = 100

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


class Explain(lister.Lister):
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
        profile = device_profile_db.get(parsed_args.profile)
        return COLUMNS, rows(
            device_profile.parse_groups(profile['groups']), parsed_args.host
        )


def rows(
    groups: tuple[device_profile.Group, ...], hostname: str | None = None
) -> Iterator[_Row]:
    """The resource providers of the groups' classes, sorted by host.

    :param hostname: the only host
    """
    classes = {name for group in groups for name in group.resources}
    after = None
    while True:
        hostnames, units = explanation_db.get_page(
            classes, PAGE, after, hostname
        )
        for inventory in explanation.inventories(units):
            for number, group in enumerate(groups):
                for candidate in explanation.explain(group, [inventory]):
                    yield (
                        number,
                        inventory.hostname,
                        inventory.rp_uuid,
                        inventory.resource_class,
                        inventory.total,
                        inventory.free,
                        '; '.join(candidate.reasons),
                    )
        if len(hostnames) < PAGE:
            return
        after = hostnames[-1]
