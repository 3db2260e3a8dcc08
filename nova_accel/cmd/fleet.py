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


"""``nova-accel-manage fleet``: who has which part of which device."""

import argparse

from nova_accel.cmd import cells
from nova_accel.cmd import database_fleet
from nova_accel.model.fleet import fleet
from nova_accel.overview import commands


class _Local(commands.OfFleet):
    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        cells.connect()
        return database_fleet.read(parsed_args.placement)


class List(commands.List, _Local):
    """Show all units, with the servers that have them.

    The exit status is 2 if the fleet could not be read. With --drift it is 1
    if sources disagree, or a host has found what it has not repaired.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        commands.add_placement(parser)
        parser.add_argument(
            '--drift',
            action='store_true',
            help=(
                'show where the sources disagree instead, and what hosts have '
                'found wrong, with remedies'
            ),
        )
        commands.add_long(parser)
        return parser

    def shows_findings(self, parsed_args: argparse.Namespace) -> bool:
        return bool(parsed_args.drift)


class Map(commands.Map, _Local):
    pass
