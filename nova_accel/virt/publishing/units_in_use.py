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

"""The units that guests of this host have, and whose they are.

A guest's unit is held for its instance if the journal or the accelerator API
says so. Any other one must be given to no one else. A guest of Nova's that
does not run has nothing: Nova makes its definition anew before it starts.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nova_accel.host import all_guests
from nova_accel.host import pci_function
from nova_accel.model import arq_types
from nova_accel.model import pci_address
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import holdings


@dataclasses.dataclass(frozen=True)
class Found:
    """The findings of one look.

    ``refused`` maps a device, as :class:`.all_guests.Guest` has it, to the
    reason why no one may get it. ``mdevs`` are the mediated devices that
    instances hold, whether they exist or not. ``held`` are the uuids of the
    attach handles that instances hold, or that are not given back yet.
    ``serials`` maps the functions of these to the serial numbers that the
    handles have, as far as they are known.
    """

    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    mdevs: tuple[pci_function.Mdev, ...] = ()
    held: frozenset[str] = frozenset()
    serials: Mapping[pci_address.PciAddress, str] = dataclasses.field(
        default_factory=dict
    )


class UnitsInUse:
    """Looks at the guests of one host, its journal and the API's list."""

    def __init__(
        self,
        held: holdings.Holdings,
        guests: all_guests.AllGuests,
        current: host_view.CurrentState,
    ) -> None:
        self._held = held
        self._guests = guests
        self._current = current

    def look(self, mdevs: Iterable[pci_function.Mdev]) -> Found:
        """Find which units are not free.

        Before the API has listed what instances hold, a guest of Nova's is
        taken to hold what it has: the journal may be lost, and the guest may
        come from another service.

        :param mdevs: the mediated devices that exist
        :raises DeviceError: libvirt does not describe its guests.
        """
        # The journal has a device before a guest does, and loses it later.
        arqs = self._held.arqs()
        guests = self._guests.look()
        arqs += self._held.arqs()
        unjournaled = self._current.unjournaled
        arqs += [arq for binding in unjournaled or () for arq in binding.arqs]
        refused = {
            device: f'guest {guest.uuid} has {device}, and is none of Nova\'s'
            for guest in guests
            if not guest.is_novas
            for device in guest.devices
        }
        novas = [guest for guest in guests if guest.is_novas]
        held = {mdev.uuid: mdev for mdev in _mdevs(arqs)}
        if unjournaled is None:
            has = {device for guest in novas for device in guest.devices}
            held |= {mdev.uuid: mdev for mdev in mdevs if mdev.uuid in has}
        else:
            known = {part for arq in arqs for part in arq.handle.parts}
            refused |= {
                device: (
                    f'the guest of server {guest.uuid} has {device}, but '
                    'neither the journal nor the accelerator API knows of it'
                )
                for guest in novas
                if guest.is_running
                for device in guest.devices - known
            }
        return Found(
            refused,
            tuple(held.values()),
            frozenset(arq.handle.uuid for arq in arqs).union(held),
            {
                arq.handle.address: serial
                for arq in arqs
                if (serial := arq.handle.serial_number) is not None
            },
        )


def _mdevs(arqs: Iterable[arq_types.Arq]) -> Iterator[pci_function.Mdev]:
    for arq in arqs:
        handle = arq.handle
        if handle.mdev_type is not None:
            yield pci_function.Mdev(
                handle.uuid, handle.mdev_type, handle.address
            )
