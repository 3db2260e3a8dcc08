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

"""Commands that read the whole fleet, whichever program runs them."""

import argparse
from collections.abc import Iterable
import datetime
import pathlib
from typing import Any

from nova_accel import exceptions
from nova_accel.model.fleet import fleet
from nova_accel.overview import columns
from nova_accel.overview import exit_status
from nova_accel.overview import fleet_map
from nova_accel.overview import printing
from nova_accel.state import durable_file

#: The exit status if sources disagree, or a host has found what it has not
#: repaired, and somebody asked for that.
WRONG = 1

Table = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add the option to show one host."""
    parser.add_argument(
        '--host',
        metavar='<hostname>',
        help="show one host, by Nova's name of the hypervisor",
    )


def add_placement(parser: argparse.ArgumentParser) -> None:
    """Add the option to ask Placement."""
    parser.add_argument(
        '--placement',
        action='store_true',
        help=(
            'ask Placement too, one request for each resource provider of ours'
        ),
    )


class OfFleet(exit_status.Answering):
    """A command that reads the fleet."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_host(parser)
        return parser

    def answer(self, parsed_args: argparse.Namespace) -> int:
        found = self.read(parsed_args)
        if parsed_args.host is not None:
            found = found.of_host(parsed_args.host)
        return self.run_on(found, parsed_args)

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        """The fleet, by the program's own way."""
        raise NotImplementedError

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        """:returns: the exit status"""
        raise NotImplementedError


class List(OfFleet, printing.Lister):
    """Show all units, with the servers that have them.

    The exit status is 2 if the fleet could not be read. With --drift it is 1
    if sources disagree, or a host has found what it has not repaired.
    """

    _found: fleet.Fleet

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_placement(parser)
        parser.add_argument(
            '--drift',
            action='store_true',
            help=(
                'show where the sources disagree instead, and what hosts have '
                'found wrong, with remedies'
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

    def answer(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.placement and not (
            parsed_args.drift or parsed_args.json
        ):
            raise exceptions.InvalidRequest(
                'a list of units shows nothing of Placement: --placement '
                'needs --drift, or --json'
            )
        return super().answer(parsed_args)

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        self._found = found
        if parsed_args.json:
            self.print_json(columns.document(found))
        else:
            self.nothing = (
                'Nothing is wrong.'
                if parsed_args.drift
                else 'No host has reported devices.'
            )
            printing.Lister.run(self, parsed_args)
        return WRONG if parsed_args.drift and found.is_wrong else 0

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        if parsed_args.drift:
            return columns.FINDINGS, columns.finding_rows(self._found)
        return columns.names(parsed_args.long), columns.rows(
            self._found, parsed_args.long
        )


class Map(OfFleet):
    """Draw a map of all units into one HTML file, for any browser.

    The file needs neither a network nor scripts. It names tenants' servers:
    only its owner can read it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_placement(parser)
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
