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
from collections.abc import Sequence

from nova_accel import reason
from nova_accel.model.profiles import extra_specs
from nova_accel.overview import commands
from nova_accel.overview import printing

COLUMNS = (
    'Group',
    'Host',
    'Devices',
    'Resource provider',
    'Class',
    'Total',
    'Free',
    'Why it cannot serve the group',
)

#: The first column is text if there are several device profiles.
Row = tuple[int | str, str, str, str, str, int, int, str]

#: How many addresses of the devices of one provider are shown.
_ADDRESSES = 2


def nothing(
    number: int | str, resource_classes: Iterable[str], why: str = ''
) -> Row:
    """The row of a group whose resource classes no host of a page has."""
    classes = ', '.join(sorted(resource_classes))
    return number, '', '', '', classes, 0, 0, why


def devices(addresses: Sequence[str]) -> str:
    """The devices of a provider."""
    return reason.some(addresses, _ADDRESSES)


class OfProfile(printing.Lister):
    """A command that takes a device profile."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'profile',
            metavar='<profile>',
            help=(
                'the name or uuid of the device profile; or several names '
                'with commas between them, as a flavor has them'
            ),
        )
        return parser


class Explain(OfProfile):
    """Show which hosts could serve a device profile, and why others cannot.

    The groups are counted from zero. The last column is empty for a resource
    provider that can serve the group now. If several device profiles are
    named, each server gets the first one that can be served.
    """

    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[Row]]:
        """The rows of some hosts after those of others.

        It is the program's own way. A group without any has :func:`nothing`.

        :param profile: its name or uuid
        :param hostname: the only host, None for all
        """
        raise NotImplementedError

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        commands.add_host(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[Row]]:
        named, host = parsed_args.profile, parsed_args.host
        if ',' not in named:
            return COLUMNS, self._rows(named, host)
        return COLUMNS, (
            (f'{name}: {row[0]}', *row[1:])
            for name in extra_specs.alternatives(named)
            for row in self._rows(name, host)
        )

    def _rows(self, profile: str, hostname: str | None) -> Iterator[Row]:
        served: set[int | str] = set()
        classes: dict[int | str, str] = {}
        for page in self.pages(profile, hostname):
            for row in sorted(
                page, key=lambda row: (row[1], *row[3:5], row[0])
            ):
                if row[1]:
                    served.add(row[0])
                    yield row
                else:
                    classes[row[0]] = row[4]
        reports = (
            'no host reports'
            if hostname is None
            else f'host {hostname} does not report'
        )
        for number, names in classes.items():
            if number not in served:
                yield nothing(number, [names], f'{reports} {names}')
