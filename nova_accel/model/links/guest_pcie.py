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

"""The PCI Express tree of a guest, made after that of its host.

NCCL, CUDA and GPUDirect RDMA choose the way between two devices by the bridges
and the NUMA nodes that the guest sees. So devices that share a root complex or
a switch on the host share one in the guest:

* A guest with NUMA cells has an expander for each root complex, on the cell
  whose memory is on the node of the devices. One without has only ``pcie.0``.
* A device is below a root port, or below a downstream port of a switch that it
  shares with another device of the guest.

The same devices in the same shape always get the same places, whatever their
addresses on the host are. See https://libvirt.org/formatdomain.html#controllers
and https://libvirt.org/pci-hotplug.html for the models of controllers.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import itertools
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model.devices import pci_path

#: So that the buses never need more than the numbers from FIRST_BUS to 255:
#: each device takes one, each shared switch two, each expander one.
MAX_FUNCTIONS = 32

#: Expanders of a guest; each has a slot of ``pcie.0``.
MAX_EXPANDERS = 16

#: The lower half of the bus numbers is left to ``pcie.0``.
FIRST_BUS = 128

#: libvirt fills ``pcie.0`` from slot 1, and has devices at 1a, 1b, 1d and 1f.
_FIRST_SLOT = 8

_FUNCTIONS_OF_SLOT = 8


class Model(enum.StrEnum):
    """libvirt's names of the controllers."""

    EXPANDER = 'pcie-expander-bus'
    ROOT_PORT = 'pcie-root-port'
    UPSTREAM_PORT = 'pcie-switch-upstream-port'
    DOWNSTREAM_PORT = 'pcie-switch-downstream-port'


class GuestFunction(NamedTuple):
    """A device that the guest gets.

    ``name`` is unique in the guest. ``group`` is equal for interchangeable
    devices, such as the number of the group of the device profile. ``path`` is
    its place on the host.
    """

    name: str
    group: int
    path: pci_path.PciPath


class PortPlace(NamedTuple):
    """An address in the guest; ``bus`` is the index of a controller."""

    bus: int
    slot: int = 0
    function: int = 0
    is_multifunction: bool = False


@dataclasses.dataclass(frozen=True)
class GuestPort:
    """A controller of type ``pci``.

    ``bus_number`` and ``cell`` are for an expander: the number that the guest
    sees, and the cell that it is near to, None if it is near to none.
    """

    index: int
    model: Model
    place: PortPlace
    bus_number: int | None = None
    cell: int | None = None


class PcieTree(NamedTuple):
    """A guest's controllers, and the places of its functions by name."""

    controllers: tuple[GuestPort, ...]
    places: Mapping[str, PortPlace]


def tree(
    functions: Collection[GuestFunction],
    cells: Mapping[int, int] | None = None,
    taken: Collection[int] = (),
) -> PcieTree:
    """The controllers of a guest, and the places of its devices.

    :param cells: NUMA node of the host -> the guest's cell on it; None if the
        guest has no cells
    :param taken: indexes of controllers that the guest has anyway
    :raises Conflict: they are more than a guest's tree can have.
    """
    if len(functions) > MAX_FUNCTIONS:
        raise exceptions.Conflict(
            f'{len(functions)} devices are more than the {MAX_FUNCTIONS} that '
            'the PCI tree of a guest is made for'
        )
    made = _Maker(taken)
    if cells is None:
        made.root_ports(0, _branches(functions), _aggregated)
    else:
        made.expanders(_roots(functions, cells))
    return PcieTree(tuple(made.controllers), made.places)


class _Branch(NamedTuple):
    """A device, or a switch that several of them share.

    ``shape`` is equal for branches that only have other host addresses.
    """

    shape: tuple[Any, ...]
    host: tuple[Any, ...]
    function: GuestFunction | None
    branches: tuple['_Branch', ...] = ()


class _Root(NamedTuple):
    """A root complex: a missing cell comes after all cells."""

    has_no_cell: bool
    cell: int
    shape: tuple[Any, ...]
    host: tuple[Any, ...]
    branches: tuple[_Branch, ...]


def _roots(
    functions: Iterable[GuestFunction], cells: Mapping[int, int]
) -> list[_Root]:
    """The root complexes in the order of their expanders.

    :raises Conflict: they are too many.
    """
    members: dict[tuple[str, int | None], list[GuestFunction]] = {}
    for function in functions:
        node = function.path.numa_node
        cell = None if node is None else cells.get(node)
        members.setdefault((function.path.root, cell), []).append(function)
    if len(members) > MAX_EXPANDERS:
        raise exceptions.Conflict(
            f'its devices are of {len(members)} root complexes, and the PCI '
            f'tree of a guest is made for {MAX_EXPANDERS}'
        )
    found = []
    for (root, cell), those in members.items():
        branches = _branches(those)
        found.append(
            _Root(
                cell is None,
                cell or 0,
                tuple(branch.shape for branch in branches),
                (root,),
                branches,
            )
        )
    # The branches, which cannot be compared, are left out.
    return sorted(found, key=lambda root: root[:4])


def _branches(
    functions: Iterable[GuestFunction], depth: int = 0
) -> tuple[_Branch, ...]:
    """The branches below a root complex, or below a switch.

    :param depth: how many switches of each path are above
    """
    found = []
    of_switches: dict[Any, list[GuestFunction]] = {}
    for function in functions:
        switches = function.path.switches()
        if len(switches) > depth:
            key = (function.path.root, switches[depth])
            of_switches.setdefault(key, []).append(function)
        else:
            path = function.path
            found.append(
                _Branch(
                    (0, function.group),
                    (path.root, path.bridges, function.name),
                    function,
                )
            )
    for members in of_switches.values():
        below = _branches(members, depth + 1)
        # A switch with a single branch joins nothing in this guest.
        found += below if len(below) == 1 else [_switch(below)]
    return tuple(sorted(found, key=lambda branch: branch[:2]))


def _switch(branches: tuple[_Branch, ...]) -> _Branch:
    return _Branch(
        (1, tuple(branch.shape for branch in branches)),
        min(branch.host for branch in branches),
        None,
        branches,
    )


def _separate(bus: int, count: int) -> Iterator[PortPlace]:
    """Places of ports, each in a slot of its own."""
    return (PortPlace(bus, slot) for slot in range(count))


def _aggregated(bus: int, count: int) -> Iterator[PortPlace]:
    """Places of root ports on ``pcie.0``, which has few slots."""
    for number in range(count):
        slot, function = divmod(number, _FUNCTIONS_OF_SLOT)
        yield PortPlace(
            bus,
            _FIRST_SLOT + slot,
            function,
            # As libvirt does it, so that others may be added later.
            is_multifunction=function == 0,
        )


class _Maker:
    """Makes the controllers from above, each with the lowest free index."""

    def __init__(self, taken: Collection[int]) -> None:
        self._indexes = (
            index for index in itertools.count(1) if index not in taken
        )
        self._bus_numbers = itertools.count(FIRST_BUS)
        self.controllers: list[GuestPort] = []
        self.places: dict[str, PortPlace] = {}

    def expanders(self, roots: Iterable[_Root]) -> None:
        for slot, root in enumerate(roots, _FIRST_SLOT):
            expander = GuestPort(
                next(self._indexes),
                Model.EXPANDER,
                PortPlace(0, slot),
                next(self._bus_numbers),
                None if root.has_no_cell else root.cell,
            )
            self.controllers.append(expander)
            self.root_ports(expander.index, root.branches, _separate)

    def root_ports(
        self,
        bus: int,
        branches: Sequence[_Branch],
        places: Callable[[int, int], Iterator[PortPlace]],
    ) -> None:
        """:param places: gives the places of so many ports on a bus"""
        for branch, place in zip(
            branches, places(bus, len(branches)), strict=True
        ):
            self._below_port(self._bridge(Model.ROOT_PORT, place), branch)

    def _below_port(self, port: int, branch: _Branch) -> None:
        if branch.function is not None:
            self.places[branch.function.name] = PortPlace(port)
            return
        upstream = self._bridge(Model.UPSTREAM_PORT, PortPlace(port))
        for each, place in zip(
            branch.branches,
            _separate(upstream, len(branch.branches)),
            strict=True,
        ):
            self._below_port(self._bridge(Model.DOWNSTREAM_PORT, place), each)

    def _bridge(self, model: Model, place: PortPlace) -> int:
        """A bridge, by its index; the bus below it takes a number."""
        bridge = GuestPort(next(self._indexes), model, place)
        next(self._bus_numbers)
        self.controllers.append(bridge)
        return bridge.index
