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

"""Whole PCI functions of one kind: what their drivers have in common."""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

from nova_accel import exceptions
from nova_accel.drivers import pci
from nova_accel.host import node_devices
from nova_accel.host import pci_function
from nova_accel.model import device
from nova_accel.model import device_spec


class PciKindDriver(pci.PciDriver):
    """As ``pci``, and it knows which functions are its own.

    :cvar kind: the type of its devices, which the operator's line overrules
    :cvar vendors: vendor id -> name of those who make them; any if empty
    """

    kind: ClassVar[str]
    vendors: ClassVar[Mapping[str, str]] = {}

    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices.HostDevices) -> device.Device | None:
        check_vendor(function, self.vendors)
        result = super().discover(
            function, dataclasses.replace(spec, type=spec.type or self.kind),
            host)
        if result is None:
            return None
        return dataclasses.replace(
            result, fault=result.fault or self.fault(function),
            attributes={**result.attributes, **self.attributes(function)})

    def attributes(
            self, function: pci_function.PciFunction) -> Mapping[str, str]:
        """What people want to read of the device, see ``Device``.

        :raises DeviceError: it cannot be read.
        """
        return {}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        """Why no guest can be given the device at the moment.

        :raises DeviceError: it cannot be read.
        """
        return None

    def read_all(self, function: pci_function.PciFunction,
                 files: Mapping[str, str]) -> dict[str, str]:
        """Attributes of the function that are there and not empty.

        :param files: name -> path below the function's directory in sysfs
        :raises DeviceError: one cannot be read.
        """
        found = {name: self._sysfs.read(function.address, path)
                 for name, path in files.items()}
        return {name: text for name, text in found.items() if text}


def check_card(function: pci_function.PciFunction) -> None:
    """Make sure that a function is a card's own, of which others are parts.

    :raises DeviceError: it is one of these.
    """
    if function.parent_address is not None:
        raise exceptions.DeviceError(
            'it is a virtual function: the line must match its card, '
            f'{function.parent_address}')


def check_vendor(function: pci_function.PciFunction,
                 vendors: Mapping[str, str]) -> None:
    """Make sure of who made a function.

    :param vendors: vendor id -> name; any if empty
    :raises DeviceError: it is another's.
    """
    if vendors and function.vendor_id not in vendors:
        raise exceptions.DeviceError(
            f'{function.vendor_id}:{function.product_id} is no device of '
            f'{" or ".join(vendors.values())}')
