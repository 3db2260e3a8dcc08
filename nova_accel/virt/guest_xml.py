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

"""The devices of a guest's configuration that stand for its ARQs."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from lxml import etree
from nova.virt.libvirt import config as vconfig

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address


class Address(vconfig.LibvirtConfigGuestDeviceAddressPCI):
    """A place in the guest.

    :ivar is_multifunction: whether others may be in the same slot
    """

    is_multifunction = False

    def format_dom(self) -> Any:
        element = super().format_dom()
        if self.is_multifunction:
            element.set('multifunction', 'on')
        return element


class HostdevPCI(vconfig.LibvirtConfigGuestHostdevPCI):
    """A PCI function of the host; without a place libvirt chooses one."""

    place: Address | None = None

    def format_dom(self) -> Any:
        return _placed(super().format_dom(), self.place)


class HostdevMDEV(vconfig.LibvirtConfigGuestHostdevMDEV):
    """A mediated device; without a place libvirt chooses one."""

    place: Address | None = None

    def format_dom(self) -> Any:
        return _placed(super().format_dom(), self.place)


def _placed(element: Any, place: Address | None) -> Any:
    if place is not None:
        element.append(place.format_dom())
    return element


def hostdevs(
    arqs: Iterable[arq_types.Arq],
    places: Mapping[str, Address] | None = None,
) -> list[HostdevPCI | HostdevMDEV]:
    """The ``<hostdev>`` of each ARQ's functions, in their order.

    :param places: :func:`name` of a device -> its address in the guest
    """
    made = [hostdev for arq in arqs for hostdev in _of(arq.handle)]
    for hostdev in made:
        hostdev.place = (places or {}).get(name(hostdev))
    return made


def name(hostdev: vconfig.LibvirtConfigGuestHostdev) -> str:
    """The PCI address, or the uuid of the mediated device."""
    if isinstance(hostdev, vconfig.LibvirtConfigGuestHostdevMDEV):
        return str(hostdev.uuid)
    return str(
        pci_address.PciAddress(
            *(
                int(part, 16)
                for part in (
                    hostdev.domain,
                    hostdev.bus,
                    hostdev.slot,
                    hostdev.function,
                )
            )
        )
    )


def functions(xml: str) -> list[pci_address.PciAddress]:
    """The PCI functions of the host that a domain's XML gives to its guest."""
    if 'hostdev' not in xml:
        return []
    return [
        pci_address.PciAddress(
            *(
                int(place.get(part, '0'), 16)
                for part in ('domain', 'bus', 'slot', 'function')
            )
        )
        for place in etree.fromstring(xml).iterfind(
            './/devices/*/source/address[@bus][@slot]'
        )
    ]


def _of(handle: attach_handle.AttachHandle) -> list[HostdevPCI | HostdevMDEV]:
    if handle.type is attach_handle.HandleType.MDEV:
        return [_mdev(handle.uuid)]
    return [_pci(address, handle.is_managed) for address in handle.functions]


def _pci(address: pci_address.PciAddress, is_managed: bool) -> HostdevPCI:
    hostdev = HostdevPCI()
    parts = address.parts
    hostdev.domain = parts['domain']
    hostdev.bus = parts['bus']
    hostdev.slot = parts['device']
    hostdev.function = parts['function']
    # libvirt takes a managed device from its host driver, and gives it back.
    hostdev.managed = 'yes' if is_managed else 'no'
    return hostdev


def _mdev(uuid: str) -> HostdevMDEV:
    hostdev = HostdevMDEV()
    hostdev.uuid = uuid
    return hostdev
