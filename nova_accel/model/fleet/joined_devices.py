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

"""The sets of joined devices of the whole fleet, as its devices tell them."""

from collections.abc import Iterable
from typing import NamedTuple

from nova_accel.model.fleet import fleet_sources


class JoinedDevices(NamedTuple):
    """A set of devices.

    ``name`` says by what they are joined, such as a PCIe switch. ``within`` is
    the name of the next larger set, empty if there is none. ``joins`` are
    texts such as "nvlink 2-4": a kind of link, and how many of the devices can
    be joined by it. ``addresses`` and ``numa_nodes`` are those of the devices,
    as far as they are known.
    """

    hostname: str
    name: str
    within: str
    joins: tuple[str, ...]
    addresses: tuple[str, ...]
    numa_nodes: tuple[int, ...]


def find(
    devices: Iterable[fleet_sources.FleetDevice],
) -> list[JoinedDevices]:
    """All sets, by hosts, each set before those within it."""
    members: dict[tuple[str, str, str], list[fleet_sources.FleetDevice]] = {}
    for device in sorted(devices, key=lambda device: device.place):
        within = ''
        for text in device.link_sets:
            members.setdefault((device.hostname, text, within), []).append(
                device
            )
            within = _name(text)
    return [
        JoinedDevices(
            hostname,
            _name(text),
            within,
            tuple(join.replace('=', ' ') for join in text.split(' ')[1:]),
            tuple(device.address for device in of_set),
            tuple(
                sorted(
                    {
                        device.numa_node
                        for device in of_set
                        if device.numa_node is not None
                    }
                )
            ),
        )
        for (hostname, text, within), of_set in members.items()
    ]


def _name(text: str) -> str:
    return text.split(' ')[0]
