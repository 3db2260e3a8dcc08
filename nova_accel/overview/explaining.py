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

"""The command that explains a profile, whichever program runs it."""

import argparse
from collections.abc import Iterable
from collections.abc import Iterator

from nova_accel.overview import printing

COLUMNS = (
    'Group',
    'Host',
    'Resource provider',
    'Class',
    'Total',
    'Free',
    'Why it cannot serve the group',
)

Row = tuple[int, str, str, str, int, int, str]


class OfProfile(printing.Lister):
    """A command that takes a device profile."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'profile',
            metavar='<profile>',
            help='the name or uuid of the device profile',
        )
        return parser


class Explain(OfProfile):
    """Show which hosts could serve a device profile, and why others cannot.

    The groups are counted from zero. The last column is empty for a resource
    provider that can serve the group now.
    """

    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[Row]]:
        """The rows of some hosts after those of others.

        It is the program's own way.

        :param profile: its name or uuid
        :param hostname: the only host, None for all
        """
        raise NotImplementedError

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--host',
            metavar='<hostname>',
            help="show one host, by Nova's name of the hypervisor",
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[Row]]:
        return COLUMNS, (
            row
            for page in self.pages(parsed_args.profile, parsed_args.host)
            for row in sorted(page, key=lambda row: (*row[1:4], row[0]))
        )
