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


"""The guests of Nova's that libvirt knows, running or not."""

from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host

from nova_accel import exceptions


class Guests:
    """The guests of one host."""

    def __init__(self, host: libvirt_host.Host) -> None:
        self._host = host

    def uuids(self) -> frozenset[str]:
        """Of their instances.

        :raises DeviceError: libvirt does not list them.
        """
        return frozenset(guest.uuid for guest in self._list())

    def mdevs(self) -> frozenset[str]:
        """The uuids of the mediated devices that they have.

        :raises DeviceError: libvirt does not say.
        """
        try:
            return frozenset(
                device.uuid for guest in self._list()
                for device in guest.get_config().devices
                if isinstance(device, vconfig.LibvirtConfigGuestHostdevMDEV))
        except libvirt_host.libvirt.libvirtError as error:
            raise exceptions.DeviceError(
                f'libvirt does not describe a guest: {error}') from error

    def _list(self) -> list[libvirt_guest.Guest]:
        try:
            guests: list[libvirt_guest.Guest] = self._host.list_guests(
                only_running=False)
            return guests
        except libvirt_host.libvirt.libvirtError as error:
            raise exceptions.DeviceError(
                f'libvirt does not list its guests: {error}') from error
