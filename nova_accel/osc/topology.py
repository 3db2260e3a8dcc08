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

"""``openstack accelerator topology`` and ``accelerator audit``."""

import argparse

from nova_accel.model.fleet import fleet
from nova_accel.osc import api_fleet
from nova_accel.overview import commands
from nova_accel.overview import exit_status
from nova_accel.overview import reading


class List(commands.List):
    """Show all units, with the servers that have them.

    The exit status is 2 if the fleet could not be read.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        commands.add_long(parser)
        return parser

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        sources = api_fleet.Sources(self.app, parsed_args.host)
        # Only the JSON has findings.
        return (
            reading.read(sources)
            if parsed_args.json
            else reading.glance(sources)
        )


class Map(commands.Map):
    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        return reading.read(api_fleet.Sources(self.app), parsed_args.placement)


class Audit(commands.List):
    """Show where the sources disagree, with remedies.

    The exit status is 0 if they agree, 1 if they do not, and 2 if that could
    not be found out. Nova's API does not tell what its own PCI tracker has
    given away: "nova-accel-manage fleet list --drift" compares that, too.
    """

    _sources: api_fleet.Sources

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        commands.add_placement(parser)
        return parser

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        self._sources = api_fleet.Sources(self.app)
        return reading.read(self._sources, parsed_args.placement)

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        status = super().run_on(found, parsed_args)
        return exit_status.UNKNOWN if self._sources.untold else status

    def shows_findings(self, parsed_args: argparse.Namespace) -> bool:
        return True
