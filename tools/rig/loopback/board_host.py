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

"""Hosts with an HGX board, as nova-compute would report and publish them."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterable
import dataclasses
import functools

from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import pci_path
from nova_accel.model.links import link_discovery
from nova_accel.model.links import linked_devices
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.providers import provider_layout
from nova_accel.testing import hgx_host
from nova_accel.testing import reports

GPU_CLASS = 'PGPU'
NIC_CLASS = 'CUSTOM_NIC'

_ALL = frozenset(range(1, 9))
_HALVES = frozenset(range(1, 5)), frozenset(range(5, 9))

_PAIRS = tuple(map(frozenset, ((1, 3), (2, 4), (5, 7), (6, 8))))


@dataclasses.dataclass(frozen=True)
class BoardHost(reports.SimulatedHost):
    """A host with eight GPUs and four network cards.

    :param module_ids: see :class:`nova_accel.testing.hgx_host.HgxHost`
    :param unsupported: partitions that Fabric Manager does not support
    """

    regions: tuple[int | None, ...] = ()
    module_ids: tuple[int, ...] = hgx_host.PAIRS_ON_SWITCHES
    unsupported: tuple[frozenset[int], ...] = ()

    @property
    def partitions(self) -> tuple[frozenset[int], ...]:
        """The modules of each partition of Fabric Manager's list."""
        return (
            _ALL,
            *_HALVES,
            *_PAIRS,
            *(frozenset({module}) for module in _ALL),
        )

    @property
    def supported(self) -> list[frozenset[int]]:
        return [
            modules
            for modules in self.partitions
            if modules not in self.unsupported
        ]

    @functools.cached_property
    def _board(self) -> hgx_host.HgxHost:
        return hgx_host.HgxHost(self.module_ids)

    @functools.cached_property
    def _joined(self) -> linked_devices.JoinedDevices:
        devices = [
            *(
                self._device(address, hgx_host.GPU, 'GPU', GPU_CLASS)
                for address in self._board.gpus
            ),
            *(
                self._device(address, hgx_host.NIC, 'NIC', NIC_CLASS)
                for address in self._board.nics
            ),
        ]
        return linked_devices.joined(
            devices,
            linked_devices.LinkFacts(
                {
                    device.name: self._path(device.address)
                    for device in devices
                },
                {},
                {
                    address.node_device: number
                    for address, number in self._board.module_ids.items()
                },
                fabric=linked_devices.Fabric(
                    tuple(
                        link_discovery.KnownPartition(
                            modules, modules not in self.unsupported
                        )
                        for modules in self.partitions
                    )
                ),
            ),
        )

    def _device(
        self,
        address: pci_address.PciAddress,
        ids: tuple[str, str],
        type_: str,
        resource_class: str,
    ) -> hardware.Device:
        vendor_id, product_id = ids
        return hardware.Device(
            name=address.node_device,
            type=type_,
            vendor_id=vendor_id,
            vendor='NVIDIA',
            product_id=product_id,
            product='board',
            driver='pci',
            numa_node=self._path(address).numa_node,
            address=address,
            pooled=True,
            pooled_by_links=True,
            deployables=(
                hardware.Deployable(
                    'unit',
                    resource_class,
                    frozenset(),
                    (self._handle(address),),
                ),
            ),
        )

    def _path(self, address: pci_address.PciAddress) -> pci_path.PciPath:
        place = self._board.place(address)
        return pci_path.PciPath(
            place.root, place.bridges, place.function.numa_node
        )

    def devices(self) -> list[hardware.Device]:
        return list(self._joined.devices)

    @functools.cached_property
    def _layout(self) -> provider_layout.Layout:
        return provider_layout.layout(
            self.hostname, self.node_uuid, self.devices(), self._joined.tree
        )

    def layout(self) -> provider_layout.Layout:
        return self._layout

    def allocations(
        self, allocated: Iterable[tuple[str, dict[str, int]]]
    ) -> tuple[provider_allocation.ProviderAllocation, ...]:
        """What Nova tells of an instance's allocations from our providers.

        :param allocated: provider, resource class -> amount
        """
        traits = {
            provider.uuid: provider.traits
            for provider in self.layout().providers
        }
        return tuple(
            provider_allocation.ProviderAllocation(
                rp_uuid, resources, traits[rp_uuid]
            )
            for rp_uuid, resources in allocated
            if rp_uuid in traits
        )

    def modules(
        self, addresses: Iterable[pci_address.PciAddress]
    ) -> frozenset[int]:
        """The module ids of those of the functions that are GPUs."""
        return frozenset(
            self._board.module_ids[address]
            for address in addresses
            if address in self._board.module_ids
        )

    def switches(
        self, addresses: Iterable[pci_address.PciAddress]
    ) -> set[pci_address.PciAddress]:
        """The PCIe switches above the functions."""
        return {
            switch
            for address in addresses
            if (switch := self._path(address).switch()) is not None
        }
