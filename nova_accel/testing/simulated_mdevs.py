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

"""The node devices of a simulated host, without a libvirt."""

from collections.abc import Iterable
import dataclasses
import fractions

from nova_accel import exceptions
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import pci_address


class SimulatedMdevs:
    """Some PCI functions, and the mediated devices that they have made.

    Drivers get it instead of ``NodeDevices`` of
    :mod:`nova_accel.host.libvirt_devices`. If a parent without mediated
    devices can make N of a type, each one takes the N-th part of it.

    :ivar is_locked: every call but ``look`` is an error
    """

    def __init__(self, functions: Iterable[pci_function.PciFunction]) -> None:
        self._functions = {each.address: each for each in functions}
        self._mdevs: dict[str, pci_function.Mdev] = {}
        self.is_locked = False

    def look(self) -> libvirt_devices.HostDevices:
        """The devices that exist, with the number that can still be made."""
        return libvirt_devices.HostDevices(
            {
                address: self._now(function)
                for address, function in self._functions.items()
            },
            tuple(self._mdevs.values()),
        )

    def function(
        self, address: pci_address.PciAddress
    ) -> pci_function.PciFunction:
        """:raises DeviceError: there is no such function."""
        self._check_unlocked()
        if address not in self._functions:
            raise exceptions.DeviceError(f'{address} is not there')
        return self._now(self._functions[address])

    def mdevs(self) -> tuple[pci_function.Mdev, ...]:
        """The mediated devices that exist."""
        self._check_unlocked()
        return tuple(self._mdevs.values())

    def create_mdev(
        self, uuid: str, parent: pci_address.PciAddress, mdev_type: str
    ) -> None:
        """:raises DeviceError: the parent is full, or the uuid is taken."""
        wanted = pci_function.Mdev(uuid, mdev_type, parent)
        if uuid not in self._mdevs:
            if not self.function(parent).mdev_types.get(mdev_type):
                raise exceptions.DeviceError(
                    f'{parent} makes no more {mdev_type}'
                )
            self._mdevs[uuid] = wanted
        if self._mdevs[uuid] != wanted:
            raise exceptions.DeviceError(f'{uuid} is another')

    def destroy_mdev(self, uuid: str) -> None:
        """Remove a mediated device, if it exists."""
        self._check_unlocked()
        self._mdevs.pop(uuid, None)

    def _now(
        self,
        function: pci_function.PciFunction,
    ) -> pci_function.PciFunction:
        left = 1 - sum(
            fractions.Fraction(1, function.mdev_types[mdev.type])
            for mdev in self._mdevs.values()
            if mdev.parent == function.address
        )
        return dataclasses.replace(
            function,
            mdev_types={
                mdev_type: int(left * units)
                for mdev_type, units in function.mdev_types.items()
            },
        )

    def _check_unlocked(self) -> None:
        if self.is_locked:
            raise AssertionError('discovery asks nothing and changes nothing')
