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

"""The reports of simulated hosts, without a nova-compute."""

import collections
import dataclasses
import functools
import hashlib
from typing import Any

from nova_accel.db import cleaning_results
from nova_accel.db import host
from nova_accel.model import attach_handle
from nova_accel.model import finding
from nova_accel.model import host_contract
from nova_accel.model import host_orders
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.providers import provider_layout

#: The shapes of a card of :class:`SimulatedHost`.
WHOLE, HALF, EIGHTH = 'whole', 'mig:3g.40gb', 'mig:1g.10gb'

# Each with its mode, and its starts and size in eighths of the card.
_SHAPES = (
    (WHOLE, card_slice.WHOLE, (0,), 8),
    (HALF, card_slice.MIG, (0, 4), 4),
    (EIGHTH, card_slice.MIG, tuple(range(7)), 1),
)


@dataclasses.dataclass(frozen=True)
class SimulatedHost:
    """A host with FPGAs of several regions, and QAT functions.

    Each region is a provider of its own with one unit of FPGA, and can be
    programmed. The functions are interchangeable units of one provider.

    :param regions: for each FPGA the number of its regions, at most eight.
        The FPGA's index here is its PCI bus. None is an FPGA that is absent.
    :param functions: number of QAT functions
    :param cards: number of GPUs, each of which can be whole, or be two halves
        or seven eighths, or some of both
    :param cleaned: whether a unit is cleaned after each guest
    :param faults: (PCI bus of an FPGA, its fault) for each FPGA with a fault
    :param serials: (PCI bus of an FPGA, its serial number), likewise
    :param function_traits: those of the functions
    :param contract: that it reports by
    :param link_sets: those that all devices are in
    :param findings: what it has found wrong
    """

    hostname: str = 'compute-1'
    regions: tuple[int | None, ...] = (1,)
    functions: int = 0
    cards: int = 0
    numa_node: int = 0
    cleaned: bool = False
    faults: tuple[tuple[int, str], ...] = ()
    serials: tuple[tuple[int, str], ...] = ()
    function_traits: tuple[str, ...] = ()
    contract: int = host_contract.NEWEST
    link_sets: tuple[str, ...] = ()
    findings: tuple[finding.Finding, ...] = ()

    @functools.cached_property
    def node_uuid(self) -> str:
        return naming.derived_uuid(
            '6ba7b810-9dad-11d1-80b4-00c04fd430c8', self.hostname
        )

    @property
    def service_host(self) -> str:
        return f'{self.hostname}.service'

    def devices(self) -> list[hardware.Device]:
        return [
            hardware.Device(
                name=f'pci_0000_{bus:02x}_00_0',
                type='FPGA',
                vendor_id='8086',
                vendor='Intel',
                product_id='09c4',
                product='PAC',
                driver='fake',
                numa_node=self.numa_node,
                address=pci_address.PciAddress(0, bus, 0, 0),
                fault=dict(self.faults).get(bus),
                attributes={'firmware': '1.2.3'},
                link_sets=self.link_sets,
                deployables=tuple(
                    self._region(bus, number) for number in range(regions)
                ),
            )
            for bus, regions in enumerate(self.regions)
            if regions is not None
        ] + [
            *(self._function(number) for number in range(self.functions)),
            *(self._card(number) for number in range(self.cards)),
        ]

    def _function(self, number: int) -> hardware.Device:
        address = pci_address.PciAddress(1, number // 32, number % 32, 0)
        return hardware.Device(
            name=address.node_device,
            type='QAT',
            vendor_id='8086',
            vendor='Intel',
            product_id='37c9',
            product='C62x',
            driver='pci',
            numa_node=self.numa_node,
            address=address,
            pooled=True,
            link_sets=self.link_sets,
            deployables=(
                hardware.Deployable(
                    'qat',
                    'CUSTOM_QAT',
                    frozenset(self.function_traits),
                    (self._handle(address),),
                    is_cleaned=self.cleaned,
                ),
            ),
        )

    def _card(self, number: int) -> hardware.Device:
        address = pci_address.PciAddress(2, number, 0, 0)
        return hardware.Device(
            name=address.node_device,
            type='VGPU',
            vendor_id='10de',
            vendor='NVIDIA',
            product_id='2330',
            product='H100',
            driver='nvidia_vfio',
            numa_node=self.numa_node,
            address=address,
            deployables=tuple(
                hardware.Deployable(
                    shape,
                    naming.shape_class(shape),
                    frozenset(),
                    tuple(
                        self._slice(number, shape, mode, start, size)
                        for start in starts
                    ),
                )
                for shape, mode, starts, size in _SHAPES
            ),
        )

    def _slice(
        self, number: int, shape: str, mode: str, start: int, size: int
    ) -> attach_handle.AttachHandle:
        """The unit of a shape that starts at an eighth of a card."""
        eighth = card_slice.WHOLE_CARD // 8
        return attach_handle.AttachHandle(
            naming.derived_uuid(
                self.node_uuid, f'card {number}', shape, str(start)
            ),
            pci_address.PciAddress(2, number, 1, start),
            slice=card_slice.CardSlice(
                shape, mode, start * eighth, size * eighth
            ),
        )

    def card(self, number: int = 0) -> str:
        """The provider of a card."""
        address = pci_address.PciAddress(2, number, 0, 0)
        return self.layout().rp_uuids[address.node_device, WHOLE]

    def allocated_shapes(
        self, *shapes: str, card: int = 0
    ) -> provider_allocation.ProviderAllocation:
        """The allocation that one instance has of a card's provider."""
        return provider_allocation.ProviderAllocation(
            self.card(card),
            dict(collections.Counter(map(naming.shape_class, shapes))),
            frozenset({naming.OWNERSHIP_TRAIT}),
        )

    def _handle(
        self,
        address: pci_address.PciAddress,
    ) -> attach_handle.AttachHandle:
        return attach_handle.AttachHandle(
            naming.derived_uuid(self.node_uuid, str(address)),
            address,
            identity=(
                dict(self.serials).get(address.bus)
                if address.domain == 0
                else None
            ),
        )

    def _region(self, bus: int, number: int) -> hardware.Deployable:
        name = f'region{number}'
        return hardware.Deployable(
            name,
            'FPGA',
            frozenset({f'CUSTOM_{name.upper()}'}),
            (self._handle(pci_address.PciAddress(0, bus, 1, number)),),
            is_cleaned=self.cleaned,
            region=name,
        )

    def layout(self) -> provider_layout.Layout:
        return self._layout

    @functools.cached_property
    def _layout(self) -> provider_layout.Layout:
        return provider_layout.layout(
            self.hostname, self.node_uuid, self.devices()
        )

    def device_uuid(self, bus: int = 0) -> str:
        """The uuid of the FPGA on a PCI bus."""
        return naming.derived_uuid(self.node_uuid, f'pci_0000_{bus:02x}_00_0')

    def reported(self) -> list[dict[str, Any]]:
        """The devices, as the host's report has them."""
        rp_uuids = self.layout().rp_uuids
        return [
            found.to_report(self.node_uuid, rp_uuids)
            for found in self.devices()
        ]

    def report(
        self, orders_seen: int | None = None
    ) -> host_orders.Orders | None:
        """Report to the database, as the REST API does.

        :returns: the orders for the host, None if nothing is new
        """
        return self.tell(orders_seen).orders

    def tell(
        self,
        orders_seen: int | None = None,
        orders_published: int | None = None,
    ) -> host.Reported:
        """As :meth:`report`, with all that follows from it."""
        return host.report(
            self.hostname,
            self.node_uuid,
            self.service_host,
            self.reported(),
            digest=hashlib.sha256(str(self).encode()).hexdigest(),
            orders_seen=orders_seen,
            contract=self.contract,
            findings=finding.to_dicts(self.findings),
            orders_published=orders_published,
        )

    def follow(self) -> None:
        """Report, and say that Placement has what was ordered."""
        told = self.report()
        if told is not None:
            self.tell(told.revision, orders_published=told.revision)

    def clean(self) -> None:
        """Report, and say that all units are clean that had to be cleaned."""
        told = self.report()
        if told is not None:
            cleaning_results.note(
                self.hostname, told.uncleaned, {}, told.revision
            )

    def rp_uuid(self, bus: int = 0, region: int = 0) -> str:
        """The provider of a region."""
        return self.layout().rp_uuids[
            f'pci_0000_{bus:02x}_00_0', f'region{region}'
        ]

    def allocated(
        self, bus: int = 0, region: int = 0
    ) -> provider_allocation.ProviderAllocation:
        """The allocation that one instance has of a region's provider."""
        return provider_allocation.ProviderAllocation(
            self.rp_uuid(bus, region),
            {'FPGA': 1},
            frozenset(
                {
                    naming.OWNER_TRAIT,
                    naming.OWNERSHIP_TRAIT,
                    f'CUSTOM_REGION{region}',
                }
            ),
        )

    def allocated_functions(
        self, amount: int
    ) -> provider_allocation.ProviderAllocation:
        """The allocation that one instance has of the functions' provider."""
        uuid = self.layout().rp_uuids[self._function(0).name, 'qat']
        return provider_allocation.ProviderAllocation(
            uuid,
            {'CUSTOM_QAT': amount},
            frozenset(
                {
                    naming.OWNER_TRAIT,
                    naming.OWNERSHIP_TRAIT,
                    *self.function_traits,
                }
            ),
        )
