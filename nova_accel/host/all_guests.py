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


"""libvirt's guests, Nova's and others, running or not."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from lxml import etree
from nova import exception
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import pci_address

# Nova marks its guests with this element.
_NOVA = f'metadata/{{{vconfig.NOVA_NS}}}instance'


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest, with its devices.

    A device is the address of a PCI function, which may be a device, interface
    or NVMe disk for libvirt, or the uuid of a mediated device.
    """

    uuid: str
    is_novas: bool
    is_running: bool
    devices: frozenset[str]


class AllGuests:
    """The guests of one host."""

    def __init__(self, host: libvirt_host.Host) -> None:
        self._host = host

    def uuids(self) -> frozenset[str]:
        """The uuids of all guests, which are also those of their instances.

        :raises DeviceError: libvirt does not list them.
        """
        return frozenset(guest.uuid for guest in self._list())

    def running(self) -> frozenset[str]:
        """The uuids of the instances whose guests run, or are paused.

        :raises DeviceError: libvirt does not list them.
        """
        return frozenset(guest.uuid for guest in self._list(only_running=True))

    def look(self) -> tuple[Guest, ...]:
        """All guests.

        :raises DeviceError: libvirt does not say.
        """
        described = tuple(self._described())
        # One that was started since has what it is described with.
        running = self.running()
        return tuple(
            Guest(
                uuid,
                element.find(_NOVA) is not None,
                uuid in running,
                frozenset(_devices(element)),
            )
            for uuid, element in described
        )

    def devices(self) -> Mapping[str, frozenset[str]]:
        """Guest uuid -> the devices that the guest has.

        :raises DeviceError: libvirt does not say.
        """
        return {
            uuid: frozenset(_devices(element))
            for uuid, element in self._described()
        }

    def check_unused(self, handle: attach_handle.AttachHandle) -> None:
        """Check that no guest has any part of a handle.

        :raises DeviceError: a guest has it, or libvirt does not say.
        """
        wanted = {handle.uuid, *handle.parts}
        for uuid, devices in self.devices().items():
            if wanted & devices:
                raise exceptions.DeviceError(
                    f'{handle.address} is in guest {uuid}'
                )

    def use_any(
        self,
        handles: Iterable[attach_handle.AttachHandle],
        made_anew: str,
    ) -> bool:
        """Whether a guest has any part of the handles.

        :param made_anew: the uuid of a guest that Nova makes anew before it
            starts, so that it has nothing while it does not run
        :raises DeviceError: libvirt does not say.
        """
        wanted = {
            name for handle in handles for name in (handle.uuid, *handle.parts)
        }
        return bool(wanted) and any(
            wanted & guest.devices
            for guest in self.look()
            if guest.is_running or guest.uuid != made_anew
        )

    def _described(self) -> Iterator[tuple[str, etree._Element]]:
        """Each guest's uuid and XML."""
        for guest in self._list():
            try:
                yield guest.uuid, etree.fromstring(guest.get_xml_desc())
            except libvirt_host.libvirt.libvirtError as error:
                if (
                    error.get_error_code()
                    != libvirt_host.libvirt.VIR_ERR_NO_DOMAIN
                ):
                    raise exceptions.DeviceError(
                        f'libvirt does not describe a guest: {error}'
                    ) from error

    def _list(
        self,
        only_running: bool = False,
    ) -> list[libvirt_guest.Guest]:
        try:
            guests: list[libvirt_guest.Guest] = self._host.list_guests(
                only_running=only_running
            )
            return guests
        except (
            libvirt_host.libvirt.libvirtError,
            # Nova raises this without a connection to libvirt.
            exception.HypervisorUnavailable,
        ) as error:
            raise exceptions.DeviceError(
                f'libvirt does not list its guests: {error}'
            ) from error


def _devices(guest: etree._Element) -> Iterator[str]:
    """The PCI addresses and mdev uuids in a guest's XML.

    The addresses of USB and SCSI devices have no slot.
    """
    for address in guest.iterfind('devices/*/source/address'):
        if address.get('uuid') is not None:
            yield address.get('uuid').lower()
        elif address.get('slot') is not None:
            yield str(
                pci_address.PciAddress(
                    *(
                        int(address.get(part, '0'), 16)
                        for part in ('domain', 'bus', 'slot', 'function')
                    )
                )
            )
