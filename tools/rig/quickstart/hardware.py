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

"""The simulated host of the quickstart, with the results that it must give."""

from collections.abc import Mapping
import dataclasses
import itertools

from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of hardware on the host.

    ``inventories`` are the units of each of its resource providers.
    ``addresses`` are the PCI functions that servers get, or the parents of
    their mediated devices.
    """

    name: str
    resource_class: str
    inventories: tuple[int, ...]
    addresses: frozenset[str]
    trait: str | None = None
    mdev_type: str | None = None

    @property
    def units(self) -> int:
        return sum(self.inventories)

    @property
    def handle_type(self) -> attach_handle.HandleType:
        return (
            attach_handle.HandleType.PCI
            if self.mdev_type is None
            else attach_handle.HandleType.MDEV
        )

    @property
    def group(self) -> dict[str, str]:
        """A group of a device profile that asks for one unit."""
        group = {f'resources:{self.resource_class}': '1'}
        if self.trait is not None:
            group[f'trait:{self.trait}'] = 'required'
        return group

    def choices(self, held: int, wanted: int) -> int:
        """The number of ways to serve groups of one unit each.

        :param held: units that servers have already
        :param wanted: the number of groups
        """
        free = list(self.inventories)
        for _unit in range(held):
            free[next(place for place, left in enumerate(free) if left)] -= 1
        return sum(
            all(chosen.count(place) <= left for place, left in enumerate(free))
            for chosen in itertools.product(range(len(free)), repeat=wanted)
        )


class Hardware:
    """A host with a GPU, two FPGA cards of two regions, and a QAT card.

    :ivar pci_info: for Nova's fake libvirt
    :ivar kinds: the kinds of accelerators that servers can get
    """

    REGIONS = 2

    def __init__(self) -> None:
        self.pci_info = devices.pci_info(
            gpus=1, fpgas=2, fpga_vfs=self.REGIONS, qats=1, qat_vfs=8
        )
        self.regions = tuple(
            self._region(index) for index in range(self.REGIONS)
        )
        self.vgpu = Kind(
            f'vGPU {fakelibvirt.NVIDIA_11_VGPU_TYPE}',
            'VGPU',
            (devices.VGPU_TYPES[fakelibvirt.NVIDIA_11_VGPU_TYPE],),
            self._addresses('MDEV_TYPES', '13f2'),
            mdev_type=fakelibvirt.NVIDIA_11_VGPU_TYPE,
        )
        qats = self._addresses('VF', '37c9')
        self.qat = Kind('QAT', 'CUSTOM_QAT', (len(qats),), qats)
        self.kinds = (*self.regions, self.vgpu, self.qat)

    def kind_of(
        self, device: str, mdevs: Mapping[str, tuple[str, str]]
    ) -> str:
        """The name of the kind of a guest's device.

        :param device: a PCI address or the uuid of a mediated device
        :param mdevs: uuid -> (parent's address, type)
        """
        address, mdev_type = mdevs.get(device, (device, None))
        return next(
            (
                kind.name
                for kind in self.kinds
                if address in kind.addresses and mdev_type == kind.mdev_type
            ),
            f'unknown {device}',
        )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Address, PCI ids, name and role of each function."""
        kinds = {
            address: kind.name
            for kind in self.kinds
            for address in kind.addresses
        }
        return [
            (
                _address(function),
                f'{function.vend_id}:{function.prod_id}',
                function.prod_name,
                kinds.get(_address(function), ''),
            )
            for function in self.pci_info.devices.values()
        ]

    def _region(self, index: int) -> Kind:
        """The kind of the regions of one type: the N-th of each card."""
        addresses = frozenset(
            address
            for address in self._addresses('VF', '09c5')
            if (int(address[-1]) - 1) % self.REGIONS == index
        )
        return Kind(
            f'FPGA region{index}',
            'FPGA',
            (1,) * len(addresses),
            addresses,
            trait=naming.region_trait(
                'FPGA', 'Intel', fake_fpga.region_type_uuid('09c4', index)
            ),
        )

    def _addresses(self, dev_type: str, product_id: str) -> frozenset[str]:
        return frozenset(
            _address(function)
            for function in self.pci_info.devices.values()
            if (function.dev_type, function.prod_id) == (dev_type, product_id)
        )


def _address(function: fakelibvirt.FakePCIDevice) -> str:
    return f'0000:{function.bus:02x}:{function.slot:02x}.{function.function}'
