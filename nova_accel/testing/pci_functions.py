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

"""PCI functions as node devices of Nova's fake libvirt, of any kind.

:mod:`nova_accel.testing.devices` has the usual host. This module builds any
other host, function by function.
"""

import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

from lxml import etree
from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs


class NodeDevice(fakelibvirt.NodeDevice):
    """A ``virNodeDevice`` of a PCI function; ``pci_device`` is its XML."""

    mac_address = None

    def __init__(self, function: pci_function.PciFunction) -> None:
        self.pci_device = xml(function)
        super().__init__(None, self.pci_device)
        self.is_capable_of_mdevs = bool(function.mdev_types)

    def XMLDesc(self, _flags: int) -> str:
        return self.pci_device


def add(
    info: fakelibvirt.HostPCIDevicesInfo, *functions: pci_function.PciFunction
) -> None:
    """Add functions, which replace those at the same addresses."""
    for function in functions:
        info.devices[function.name] = NodeDevice(function)


def function(
    address: str,
    vendor_id: str,
    product_id: str,
    iommu_group: int | None = None,
    with_functions: Iterable[str] = (),
    **facts: Any,
) -> pci_function.PciFunction:
    """A function, in an IOMMU group of its own unless one is given.

    :param with_functions: the other members of its IOMMU group
    :param facts: fields of :class:`nova_accel.host.pci_function.PciFunction`
    """
    parsed = pci_address.PciAddress.parse(address)
    if iommu_group is None:
        iommu_group = (parsed.bus * 32 + parsed.slot) * 8 + parsed.function
    members = sorted(
        map(pci_address.PciAddress.parse, (address, *with_functions))
    )
    return dataclasses.replace(
        pci_function.PciFunction(
            parsed.node_device,
            parsed,
            vendor_id,
            product_id,
            iommu_group=iommu_group,
            iommu_members=tuple(members),
        ),
        **facts,
    )


def virtual_functions(
    card: pci_function.PciFunction,
    count: int,
    product_id: str,
    **facts: Any,
) -> list[pci_function.PciFunction]:
    """A card, followed by its virtual functions, each of them isolated.

    :param facts: fields of each virtual function
    """
    places = [
        divmod(card.address.function + number, 8)
        for number in range(1, count + 1)
    ]
    parts = [
        function(
            f'{card.address.domain:04x}:{card.address.bus:02x}:'
            f'{card.address.slot + slot:02x}.{number}',
            card.vendor_id,
            product_id,
            parent_address=card.address,
            numa_node=card.numa_node,
            **facts,
        )
        for slot, number in places
    ]
    return [
        dataclasses.replace(
            card, virtual_functions=tuple(part.address for part in parts)
        ),
        *parts,
    ]


def sriov(
    info: fakelibvirt.HostPCIDevicesInfo,
    sysfs: fake_sysfs.FakeSysfs,
    cards: Mapping[str, str],
) -> None:
    """Make virtual functions when ``sriov_numvfs`` is written.

    :param cards: address of a card -> product id of its virtual functions
    """

    def make(address: pci_address.PciAddress, value: str) -> None:
        card = pci_function.parse_pci(
            info.devices[address.node_device].XMLDesc(0)
        )
        add(info, *virtual_functions(card, int(value), cards[str(address)]))

    for address in cards:
        sysfs.set(address, sriov_numvfs='0')
    sysfs.on_write['sriov_numvfs'] = make


def xml(function: pci_function.PciFunction) -> str:
    """The node device as libvirt describes it."""
    device = etree.Element('device')
    _text(device, 'name', function.name)
    _text(
        device,
        'parent',
        'computer'
        if function.upstream is None
        else function.upstream.node_device,
    )
    if function.driver is not None:
        _text(etree.SubElement(device, 'driver'), 'name', function.driver)
    pci = etree.SubElement(device, 'capability', type='pci')
    if function.class_code is not None:
        _text(pci, 'class', f'0x{function.class_code}')
    address = function.address
    for part in ('domain', 'bus', 'slot', 'function'):
        _text(pci, part, str(getattr(address, part)))
    _text(
        pci, 'product', function.product or '', id=f'0x{function.product_id}'
    )
    _text(pci, 'vendor', function.vendor or '', id=f'0x{function.vendor_id}')
    if function.is_bridge:
        etree.SubElement(pci, 'capability', type='pci-bridge')
    _add_relations(pci, function)
    if function.numa_node is not None:
        etree.SubElement(pci, 'numa', node=str(function.numa_node))
    return etree.tostring(device, encoding='unicode')


def _add_relations(
    pci: etree._Element, function: pci_function.PciFunction
) -> None:
    if function.parent_address is not None:
        capability = etree.SubElement(pci, 'capability', type='phys_function')
        _address(capability, function.parent_address)
    most = max(function.max_virtual_functions, len(function.virtual_functions))
    if most:
        capability = etree.SubElement(
            pci, 'capability', type='virt_functions', maxCount=str(most)
        )
        for address in function.virtual_functions:
            _address(capability, address)
    if function.mdev_types:
        capability = etree.SubElement(pci, 'capability', type='mdev_types')
        for type_, available in function.mdev_types.items():
            element = etree.SubElement(capability, 'type', id=type_)
            _text(element, 'deviceAPI', 'vfio-pci')
            _text(element, 'availableInstances', str(available))
    if function.iommu_group is not None:
        group = etree.SubElement(
            pci, 'iommuGroup', number=str(function.iommu_group)
        )
        for address in function.iommu_members:
            _address(group, address)


def _address(parent: etree._Element, address: pci_address.PciAddress) -> None:
    etree.SubElement(
        parent,
        'address',
        domain=f'{address.domain:#06x}',
        bus=f'{address.bus:#04x}',
        slot=f'{address.slot:#04x}',
        function=f'{address.function:#x}',
    )


def _text(
    parent: etree._Element, tag: str, text: str, **attributes: str
) -> None:
    etree.SubElement(parent, tag, **attributes).text = text
