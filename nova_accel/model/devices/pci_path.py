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

"""The place of a PCI function in the PCI tree of its host.

Linux shows it in the real path of the function's directory in sysfs, as
``devices/pci0000:16/0000:16:01.0/0000:17:00.0``: the root complex, the bridges
from the root port down, and the function.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import re
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import bounds
from nova_accel.model import pci_address

#: A path of 32 bridges would use up an eighth of a segment's bus numbers.
MAX_BRIDGES = 32

_ROOT = re.compile(r'pci[0-9a-f]{4,8}:[0-9a-f]{2}')


class PciPath(NamedTuple):
    """The bridges above a PCI function.

    ``root`` is the kernel's name of the root complex, such as
    ``pci0000:16``. ``bridges`` begin with the root port, and are empty for a
    function that is integrated into the root complex. ``numa_node`` is None
    if the firmware tells none.
    """

    root: str
    bridges: tuple[pci_address.PciAddress, ...] = ()
    numa_node: int | None = None

    def switches(self) -> tuple[pci_address.PciAddress, ...]:
        """The upstream ports of the switches above the function, from above.

        A switch is two bridges, because each of its ports is one. A single
        bridge at the end of the path joins a conventional PCI bus.
        """
        return self.bridges[1:-1:2]

    def switch(self) -> pci_address.PciAddress | None:
        """The upstream port of the lowest switch above the function."""
        return next(reversed(self.switches()), None)


def parse(parts: Sequence[str], numa_node: str | None = None) -> PciPath:
    """Read the parts of a function's real path in sysfs.

    :param parts: of the path, the last one is the function
    :param numa_node: the value of its attribute ``numa_node``, ``-1`` or None
        if there is none
    :raises DeviceError: they are not the path of a PCI function.
    """
    below = tuple(_below_root(parts))
    # The root complex and the function are no bridges.
    if not 2 <= len(below) <= MAX_BRIDGES + 2:
        raise exceptions.DeviceError(
            f'{"/".join(parts)!r:.256} is not the path of a PCI function'
        )
    root, *bridges, function = below
    try:
        pci_address.PciAddress.parse(function)
        return PciPath(
            root,
            tuple(map(pci_address.PciAddress.parse, bridges)),
            _node(numa_node),
        )
    except exceptions.InvalidName as error:
        raise exceptions.DeviceError(
            f'its path has an unknown part: {error}'
        ) from error


def _below_root(parts: Sequence[str]) -> Iterator[str]:
    """The parts from the last root complex on.

    Intel's VMD makes a root complex below a function of another one.
    """
    roots = [
        index
        for index, part in enumerate(parts)
        if _ROOT.fullmatch(part) is not None
    ]
    if roots:
        yield from parts[roots[-1] :]


def _node(text: str | None) -> int | None:
    """:raises DeviceError: it is not the number of a NUMA node."""
    if text is None or text == '-1':
        return None
    if re.fullmatch('[0-9]{1,4}', text) is None or (
        int(text) > bounds.MAX_NUMA_NODE
    ):
        raise exceptions.DeviceError(f'{text!r:.64} is not a NUMA node')
    return int(text)
