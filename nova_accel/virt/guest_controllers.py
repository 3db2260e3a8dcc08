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

"""The PCI controllers of a guest's configuration, of models that Nova lacks.

The format is libvirt's, see https://libvirt.org/formatdomain.html#controllers
"""

from collections.abc import Iterable
from typing import Any

from lxml import etree
from nova.virt.libvirt import config as vconfig

from nova_accel.model.links import guest_pcie
from nova_accel.virt import guest_xml


class GuestController(vconfig.LibvirtConfigGuestController):
    """A controller of type ``pci`` at a place of its own."""

    def __init__(self, wanted: guest_pcie.GuestPort) -> None:
        super().__init__()
        self.type = 'pci'
        self.index = wanted.index
        self.model = str(wanted.model)
        self._wanted = wanted

    def format_dom(self) -> Any:
        element = super().format_dom()
        wanted = self._wanted
        if wanted.bus_number is not None:
            target = etree.SubElement(
                element, 'target', busNr=str(wanted.bus_number)
            )
            if wanted.cell is not None:
                etree.SubElement(target, 'node').text = str(wanted.cell)
        element.append(address(wanted.place).format_dom())
        return element


def address(place: guest_pcie.PortPlace) -> guest_xml.Address:
    """A place, as a device's configuration has it."""
    made = guest_xml.Address()
    made.domain = '0x0000'
    made.bus = f'{place.bus:#04x}'
    made.slot = f'{place.slot:#04x}'
    made.function = f'{place.function:#x}'
    made.is_multifunction = place.is_multifunction
    return made


def taken_indexes(guest: vconfig.LibvirtConfigGuest) -> frozenset[int]:
    """The indexes that the guest's own PCI controllers have or will get.

    libvirt gives those without an index the lowest free ones. It puts Nova's
    devices on the ports in the order of the indexes, so Nova's come first.
    """
    indexes: set[int] = set()
    unnumbered = 0
    for device in _controllers(guest):
        if device.index is not None:
            indexes.add(int(device.index))
        elif not isinstance(
            device, vconfig.LibvirtConfigGuestPCIeRootController
        ):
            unnumbered += 1
    free = 1
    while unnumbered:
        if free not in indexes:
            indexes.add(free)
            unnumbered -= 1
        free += 1
    return frozenset(indexes)


def _controllers(
    guest: vconfig.LibvirtConfigGuest,
) -> Iterable[vconfig.LibvirtConfigGuestController]:
    return (
        device
        for device in guest.devices
        if isinstance(device, vconfig.LibvirtConfigGuestController)
        and device.type == 'pci'
    )
