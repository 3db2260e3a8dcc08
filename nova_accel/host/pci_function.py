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


"""libvirt's XML of node devices, read with Nova's own parser.

lxml reads what that parser leaves out. The format is libvirt's, see
https://libvirt.org/formatnode.html
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from lxml import etree
from nova import exception
from nova.virt.libvirt import config as vconfig

from nova_accel import exceptions
from nova_accel.model import pci_address
from nova_accel.model.devices import subsystem as subsystems

# The PCI classes of bridges on the path to a device: host bridges, and bridges
# between buses, including root ports (PCI Code and ID Assignment
# Specification, 1.7).
_BRIDGES = ('0600', '0604', '0609')


@dataclasses.dataclass(frozen=True)
class Link:
    """A PCI Express link: its speed in GT/s, and its number of lanes."""

    speed: float
    width: int

    def __str__(self) -> str:
        return f'{self.speed:g} GT/s x{self.width}'


@dataclasses.dataclass(frozen=True)
class PciFunction:
    """One PCI function of the host.

    ``name`` is libvirt's name of its node device. ``vendor_id`` and
    ``product_id`` are four lower-case hexadecimal digits, ``vendor`` and
    ``product`` the host's names for them. ``driver`` is the host driver that
    it is bound to. ``parent_address`` is the physical function of a virtual
    one. ``mdev_types`` maps its types of mediated devices to how many more of
    each it can make now.

    ``class_code`` is its PCI class, six lower-case hexadecimal digits.
    ``iommu_group`` is the number of its IOMMU group, None without an IOMMU.
    ``iommu_members`` are all functions of the group, including this one.
    ``max_virtual_functions`` is how many it can have. ``link_max`` is its
    fastest link, ``link`` the present one, which changes with the power state.
    ``upstream`` is the port or bridge above it. ``vpd`` are its Vital Product
    Data, under libvirt's names: ``part_number``, ``serial_number``,
    ``change_level``, ``vendor_field_<index>``. ``subsystem`` is its board,
    None if it is not known; only a look at all of the host's devices tells it.
    """

    name: str
    address: pci_address.PciAddress
    vendor_id: str
    product_id: str
    vendor: str | None = None
    product: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    parent_address: pci_address.PciAddress | None = None
    virtual_functions: tuple[pci_address.PciAddress, ...] = ()
    mdev_types: Mapping[str, int] = dataclasses.field(default_factory=dict)
    class_code: str | None = None
    is_bridge: bool = False
    iommu_group: int | None = None
    iommu_members: tuple[pci_address.PciAddress, ...] = ()
    max_virtual_functions: int = 0
    link_max: Link | None = None
    link: Link | None = None
    upstream: pci_address.PciAddress | None = None
    vpd: Mapping[str, str] = dataclasses.field(default_factory=dict)
    subsystem: subsystems.Subsystem | None = None

    @property
    def card(self) -> pci_address.PciAddress:
        """The card's physical function, which may be this one."""
        return self.parent_address or self.address

    @property
    def card_serial_number(self) -> str | None:
        """The serial number in its Vital Product Data, None without one."""
        return self.vpd.get('serial_number')


@dataclasses.dataclass(frozen=True)
class Mdev:
    """An existing mediated device, and the PCI function that made it."""

    uuid: str
    type: str
    parent: pci_address.PciAddress


def parse_pci(xml: str) -> PciFunction:
    """Read the XML of a PCI node device.

    :raises DeviceError: it is not one.
    """
    device = _parse(xml)
    pci = device.pci_capability
    if pci is None:
        raise exceptions.DeviceError('its XML has no PCI capability')
    element = etree.fromstring(xml)
    try:
        related = {
            capability.type: tuple(
                pci_address.PciAddress(*address)
                for address in capability.device_addrs
            )
            for capability in pci.fun_capability
        }
        return PciFunction(
            name=device.name,
            address=pci_address.PciAddress.parse(pci.pci_address()),
            vendor_id=f'{pci.vendor_id:04x}',
            product_id=f'{pci.product_id:04x}',
            vendor=pci.vendor,
            product=pci.product,
            numa_node=pci.numa_node,
            driver=element.findtext('driver/name'),
            parent_address=next(iter(related.get('phys_function', ())), None),
            virtual_functions=related.get('virt_functions', ()),
            mdev_types={
                type_['type']: type_['availableInstances']
                for capability in pci.mdev_capability
                for type_ in capability.mdev_types
            },
            upstream=_upstream(device.parent),
            vpd=_vpd(pci.vpd_capability),
            **_beyond_nova(element.find("capability[@type='pci']")),
        )
    except (KeyError, TypeError, ValueError, exceptions.InvalidName) as error:
        raise exceptions.DeviceError(
            f'its XML is unusable: {error}'
        ) from error


def _beyond_nova(pci: etree._Element) -> dict[str, Any]:
    """The attributes that Nova's parser leaves out.

    :raises ValueError, TypeError: it is malformed.
    """
    class_code = pci.findtext('class')
    if class_code is not None:
        class_code = f'{int(class_code, 16):06x}'
    group = pci.find('iommuGroup')
    counts = pci.xpath("capability[@type='virt_functions']/@maxCount")
    return {
        'class_code': class_code,
        'is_bridge': (
            (class_code or '').startswith(_BRIDGES)
            or pci.find("capability[@type='pci-bridge']") is not None
        ),
        'iommu_group': None if group is None else int(group.get('number')),
        'iommu_members': ()
        if group is None
        else tuple(
            pci_address.PciAddress(
                *(
                    int(address.get(part), 16)
                    for part in ('domain', 'bus', 'slot', 'function')
                )
            )
            for address in group.iterfind('address')
        ),
        'max_virtual_functions': int(counts[0]) if counts else 0,
        'link_max': _link(pci, 'cap'),
        'link': _link(pci, 'sta'),
    }


def _link(pci: etree._Element, validity: str) -> Link | None:
    link = pci.find(f"pci-express/link[@validity='{validity}']")
    # A root complex has no speed.
    if link is None or link.get('speed') is None:
        return None
    return Link(float(link.get('speed')), int(link.get('width')))


def _upstream(parent: str | None) -> pci_address.PciAddress | None:
    try:
        return pci_address.PciAddress.parse_node_device(parent or '')
    except exceptions.InvalidName:
        # It is the root of the tree, "computer".
        return None


def _vpd(vpd: vconfig.LibvirtConfigNodeDeviceVpdCap | None) -> dict[str, str]:
    if vpd is None:
        return {}
    fields = {
        'card_name': vpd.card_name,
        'change_level': vpd.change_level,
        'manufacture_id': vpd.manufacture_id,
        'part_number': vpd.part_number,
        'serial_number': vpd.card_serial_number,
        **{
            f'vendor_field_{index}': value
            for index, value in vpd.ro_vendor_fields.items()
        },
    }
    return {name: value.strip() for name, value in fields.items() if value}


def parse_mdev(xml: str) -> Mdev | None:
    """Read the XML of a mediated device; None if its parent is not PCI.

    :raises DeviceError: it is not one.
    """
    device = _parse(xml)
    information = device.mdev_information
    if None in (device.parent, information) or None in (
        information.type,
        information.uuid,
    ):
        raise exceptions.DeviceError('its XML is unusable')
    try:
        parent = pci_address.PciAddress.parse_node_device(device.parent)
    except exceptions.InvalidName:
        return None
    return Mdev(information.uuid, information.type, parent)


def _parse(xml: str) -> vconfig.LibvirtConfigNodeDevice:
    device = vconfig.LibvirtConfigNodeDevice()
    try:
        device.parse_str(xml)
    except (
        etree.Error,
        exception.NovaException,
        TypeError,
        ValueError,
    ) as error:
        raise exceptions.DeviceError(
            f'its XML cannot be read: {error}'
        ) from error
    return device
