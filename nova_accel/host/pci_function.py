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


"""libvirt's XML of node devices, read with Nova's own parser."""

from collections.abc import Mapping
import dataclasses

from lxml import etree
from nova import exception
from nova.virt.libvirt import config as vconfig

from nova_accel import exceptions
from nova_accel.model import pci_address


@dataclasses.dataclass(frozen=True)
class PciFunction:
    """One PCI function of the host.

    ``name`` is that of its node device. ``vendor_id`` and ``product_id`` are
    four lower-case hexadecimal digits; ``vendor`` and ``product`` the names
    that the host knows for them. ``driver`` is what the host has it bound to.
    ``parent_address`` is the physical function of a virtual one.
    ``mdev_types`` maps the types of mediated devices that it makes to how many
    more of each it can make now.
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


@dataclasses.dataclass(frozen=True)
class Mdev:
    """A mediated device that exists, and the PCI function that made it."""

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
    try:
        related = {
            capability.type: tuple(pci_address.PciAddress(*address)
                                   for address in capability.device_addrs)
            for capability in pci.fun_capability}
        return PciFunction(
            name=device.name,
            address=pci_address.PciAddress.parse(pci.pci_address()),
            vendor_id=f'{pci.vendor_id:04x}',
            product_id=f'{pci.product_id:04x}',
            vendor=pci.vendor, product=pci.product, numa_node=pci.numa_node,
            driver=etree.fromstring(xml).findtext('driver/name'),
            parent_address=next(
                iter(related.get('phys_function', ())), None),
            virtual_functions=related.get('virt_functions', ()),
            mdev_types={type_['type']: type_['availableInstances']
                        for capability in pci.mdev_capability
                        for type_ in capability.mdev_types})
    except (KeyError, TypeError, exceptions.InvalidName) as error:
        raise exceptions.DeviceError(
            f'its XML is unusable: {error}') from error


def parse_mdev(xml: str) -> Mdev | None:
    """Read the XML of a mediated device; None if its parent is not PCI.

    :raises DeviceError: it is not one.
    """
    device = _parse(xml)
    information = device.mdev_information
    if None in (device.parent, information) or None in (
            information.type, information.uuid):
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
    except (etree.Error, exception.NovaException, TypeError,
            ValueError) as error:
        raise exceptions.DeviceError(
            f'its XML cannot be read: {error}') from error
    return device
