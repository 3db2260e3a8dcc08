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

"""The mediated devices that a Cyborg has left, and nobody has."""

from collections.abc import Collection
from collections.abc import Iterator

from oslo_log import log as logging

from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.model import finding
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)


class LeftMdevs:
    """Destroys them, so that their card can make ours.

    Nova's own driver makes a mediated device of a Cyborg for the first guest
    that gets it, and leaves it to the next one. Nobody but the database of
    that Cyborg can tell it from what others have made of the card.
    """

    def __init__(
        self,
        node_devices: libvirt_devices.NodeDevices,
        guests: all_guests.Guests,
        held: holdings.Holdings,
    ) -> None:
        self._node_devices = node_devices
        self._guests = guests
        self._held = held

    def destroy(self, uuids: Collection[str]) -> list[finding.Finding]:
        """Destroy those that exist, and that no guest and no instance has.

        :returns: the ones that are still there
        :raises DeviceError: libvirt does not say what there is.
        """
        return list(self._destroy(uuids)) if uuids else []

    def _destroy(self, uuids: Collection[str]) -> Iterator[finding.Finding]:
        # In this order: a guest gets only what exists and is held.
        there = {
            mdev.uuid: mdev.parent
            for mdev in self._node_devices.mdevs()
            if mdev.uuid in uuids
        }
        held = {arq.handle.uuid for arq in self._held.arqs()}
        in_guests = frozenset().union(*self._guests.devices().values())
        for uuid in sorted(there.keys() - held - in_guests):
            words = (
                f'The mediated device {uuid} of {there[uuid]} is destroyed: '
                'Cyborg has left it, and nobody has it'
            )
            with retries.retry_later(
                f'The mediated device {uuid} is still there'
            ) as tried:
                self._node_devices.destroy_mdev(uuid)
                LOG.info(words)
            if not tried.is_done:
                yield from tried.outcome(finding.Kind.MDEV, words, device=uuid)
