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

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import database_fleet
from nova_accel.metrics import room
from nova_accel.model.fleet import fleet
from nova_accel.overview import commands
from nova_accel.overview import printing

CONF = conf.CONF


class _Local(commands.OfFleet):
    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        cells.connect()
        return database_fleet.read(parsed_args.placement)


class List(commands.List, _Local):
    pass


class Map(commands.Map, _Local):
    pass


class Room(printing.Lister):
    """Show how many servers with device profiles fit now, and could fit.

    The second number is how many fit at least if all servers are packed anew.
    The difference is lost to fragmentation.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'profile',
            nargs='*',
            metavar='<profile>',
            help=(
                'the name of a device profile (default: those of [nova_accel] '
                'metrics_device_profiles)'
            ),
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> commands.Table:
        names = parsed_args.profile or CONF.nova_accel.metrics_device_profiles
        if not names:
            raise exceptions.InvalidRequest(
                'Name a device profile, or set [nova_accel] '
                'metrics_device_profiles'
            )
        found = room.read(names)
        missing = {*names}.difference(each.profile for each in found)
        if missing:
            raise exceptions.NotFound(
                f'There is no device profile {", ".join(sorted(missing))}'
            )
        return ('Device profile', 'Fit now', 'Fit if moved'), found
