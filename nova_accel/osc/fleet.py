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

"""``openstack accelerator fleet``: who has which part of which device."""

import argparse

from nova_accel.model.fleet import fleet
from nova_accel.osc import api_fleet
from nova_accel.overview import commands
from nova_accel.overview import exit_status
from nova_accel.overview import reading


class _Remote(commands.OfFleet):
    _sources: api_fleet.Sources

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        # Placement is asked for the providers of all hosts at once.
        host = None if parsed_args.placement else parsed_args.host
        self._sources = api_fleet.Sources(self.app, host)
        return reading.read(self._sources, parsed_args.placement)


class List(commands.List, _Remote):
    """Show all units, with the servers that have them.

    The exit status is 2 if the fleet could not be read. With --drift it is 1
    if sources disagree, or a host has found what it has not repaired. Nova's
    API does not tell what its own PCI tracker has given away:
    "nova-accel-manage fleet list --drift" compares that, too.
    """

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        if parsed_args.drift or parsed_args.json:
            return super().read(parsed_args)
        # A list of units does not show where the sources disagree.
        return reading.glance(api_fleet.Sources(self.app, parsed_args.host))

    def run_on(
        self, found: fleet.Fleet, parsed_args: argparse.Namespace
    ) -> int:
        status = super().run_on(found, parsed_args)
        if parsed_args.drift and self._sources.untold:
            return exit_status.UNKNOWN
        return status


class Map(commands.Map, _Remote):
    pass
