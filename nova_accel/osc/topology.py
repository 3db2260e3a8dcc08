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

"""``openstack accelerator topology``: which devices are joined."""

import argparse
from collections.abc import Iterator

from nova_accel.model.fleet import joined_devices
from nova_accel.osc import api_fleet
from nova_accel.overview import commands
from nova_accel.overview import printing

COLUMNS = ('Host', 'Set', 'Within', 'Can be joined', 'Devices', 'NUMA node')


class List(printing.Lister):
    """Show the sets of joined devices of each host.

    The name of a set says by what they are joined: a PCIe switch, a root
    complex, a NUMA node or NVLink. A device profile asks for joined devices
    with accel:link.
    """

    nothing = (
        'No host has joined devices. nova-compute looks for them with '
        '"pool": "link" in a line of [nova_accel] device_spec.'
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        commands.add_host(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
        ours = api_fleet.Sources(self.app, parsed_args.host).ours()
        return COLUMNS, (
            (
                each.hostname,
                each.name,
                each.within,
                ', '.join(each.joins),
                ' '.join(each.addresses),
                ' '.join(map(str, each.numa_nodes)),
            )
            for each in joined_devices.find(ours.devices)
        )
