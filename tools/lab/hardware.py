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

"""What a machine is made of whose /sys is hand-written.

:mod:`lab.fake_sys` shows it, :mod:`lab.fake_kernel` makes it do something.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from lab import vital_product_data

#: Path -> content.
Files = Mapping[str, str | bytes]


@dataclasses.dataclass(frozen=True)
class MdevType:
    """A type of mediated device, and how many of it a card can make.

    ``is_mixed`` says that it is also made beside those of other sizes.
    """

    name: str
    title: str
    available: int
    is_mixed: bool = False


@dataclasses.dataclass(frozen=True)
class VgpuType:
    """A type of vGPU that a virtual function can be set to be.

    ``available`` is how many virtual functions of a card can be of it.
    """

    number: int
    name: str
    available: int
    is_mixed: bool = False


@dataclasses.dataclass(frozen=True)
class Link:
    """A PCI Express link: what it can be, and what it is if that is less.

    Speeds are those of the generations of PCI Express: 1 is 2.5 GT/s.
    """

    generation: int
    width: int
    current_generation: int | None = None
    current_width: int | None = None

    @property
    def now(self) -> tuple[int, int]:
        """(generation, width)"""
        return (
            self.current_generation or self.generation,
            self.current_width or self.width,
        )


@dataclasses.dataclass(frozen=True)
class VirtualFunctions:
    """The virtual functions that a physical one can have.

    Their routing ids begin ``offset`` behind the card's, as its SR-IOV
    capability says, their IOMMU groups at ``first_group``. ``at_boot`` are
    there from the start; those of a driver that is not ``configurable`` come
    and go otherwise than through ``sriov_numvfs``. Types are the card's, and
    each function makes one of them. ``files`` are those of each.
    """

    total: int
    product: int
    driver: str | None
    first_group: int
    offset: int = 1
    at_boot: int = 0
    configurable: bool = True
    mdev_types: tuple[MdevType, ...] = ()
    vgpu_types: tuple[VgpuType, ...] = ()
    files: Files = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Function:
    """A PCI function; a physical one has its virtual ones.

    ``driver`` is what binds to it when the machine boots, ``group`` its IOMMU
    group, ``interface`` the network interface that it is (which libvirt lists,
    and complains in its log that it is not real). ``files`` are its
    driver's, by their paths below the function; ``classes`` are the paths
    below ``class/``, each with the directory of the function that it is a
    link to. ``bridge`` is the path of the bridge that it is behind, ``card``
    that of the function that it is a virtual function of.
    """

    address: str
    vendor: int
    product: int
    device_class: int
    driver: str | None
    group: int | None
    numa_node: int = 0
    virtual_functions: VirtualFunctions | None = None
    mdev_types: tuple[MdevType, ...] = ()
    vgpu_types: tuple[VgpuType, ...] = ()
    interface: str | None = None
    link: Link | None = None
    reset_methods: tuple[str, ...] = ('flr', 'bus')
    product_data: vital_product_data.Product | None = None
    files: Files = dataclasses.field(default_factory=dict)
    classes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bridge: str = ''
    card: str = ''

    @property
    def path(self) -> str:
        """Its directory, from the top of the tree."""
        return f'{self.bridge or self._root}/{self.address}'

    @property
    def is_bridge(self) -> bool:
        return self.device_class >> 8 == 0x0604

    @property
    def _root(self) -> str:
        return f'devices/pci{self.address[:7]}'

    def virtual(self, index: int) -> 'Function':
        """One of its virtual functions."""
        virtual = self.virtual_functions
        assert virtual is not None
        interface = self.interface and f'{self.interface}v{index}'
        return Function(
            _further(self.address, virtual.offset + index),
            self.vendor,
            virtual.product,
            self.device_class,
            virtual.driver,
            virtual.first_group + index,
            numa_node=self.numa_node,
            mdev_types=virtual.mdev_types,
            vgpu_types=virtual.vgpu_types,
            interface=interface,
            reset_methods=('flr',),
            files=virtual.files,
            bridge=self.bridge or self._root,
            card=self.path,
        )

    def at_boot(self) -> Iterator['Function']:
        """The virtual functions that are there when the machine starts."""
        if self.virtual_functions is not None:
            yield from map(self.virtual, range(self.virtual_functions.at_boot))


@dataclasses.dataclass(frozen=True)
class MdevParent:
    """What makes mediated devices and is no PCI function.

    ``subsystem`` is where its kind is listed: ``class/mtty``, for example.
    """

    path: str
    subsystem: str
    mdev_types: tuple[MdevType, ...]
    device_api: str = 'vfio-pci'


@dataclasses.dataclass(frozen=True)
class Machine:
    """All that is in a machine; ``functions`` are no virtual ones."""

    functions: tuple[Function, ...] = ()
    mdev_parents: tuple[MdevParent, ...] = ()

    def at_boot(self) -> Iterator[Function]:
        """The functions that are there when it starts."""
        for function in self.functions:
            yield function
            yield from function.at_boot()


def _further(address: str, steps: int) -> str:
    """The address so many routing ids behind another."""
    domain, bus, rest = address.split(':')
    slot, function = rest.split('.')
    number = (int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)) + steps
    return f'{domain}:{number >> 8:02x}:{number >> 3 & 0x1F:02x}.{number & 7}'
