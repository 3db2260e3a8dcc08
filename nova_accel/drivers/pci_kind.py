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

"""The common part of drivers for whole PCI functions of one kind."""

from collections.abc import Mapping
import dataclasses
from typing import ClassVar

from nova_accel import exceptions
from nova_accel.drivers import pci
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware


class PciKindDriver(pci.PciDriver):
    """Like ``pci``, but for one type of devices and some vendors.

    :cvar vendors: the supported vendors, vendor id -> name; any if empty
    """

    vendors: ClassVar[Mapping[str, str]] = {}

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        check_vendor(function, self.vendors)
        result = super().discover(
            function,
            dataclasses.replace(spec, type=spec.type or self.kind),
            host,
        )
        if result is None:
            return None
        return dataclasses.replace(
            result,
            fault=result.fault or self.fault(function),
            attributes={**result.attributes, **self.attributes(function)},
        )

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        """Further attributes of the device, see ``Device.attributes``."""
        return {}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        """Why no guest can get the device at the moment, None if one can."""
        return None

    def read_all(
        self, function: pci_function.PciFunction, files: Mapping[str, str]
    ) -> dict[str, str]:
        """The attributes of the function that can be read and are not empty.

        :param files: name -> path below the function's directory in sysfs
        """
        found = {
            name: self._sysfs.optional.read(function.address, path)
            for name, path in files.items()
        }
        return {name: text for name, text in found.items() if text}


def check_card(function: pci_function.PciFunction) -> None:
    """Check that a function is a card, not a virtual function of one.

    :raises PartOfCard: it is a virtual function.
    """
    if function.parent_address is not None:
        raise exceptions.PartOfCard(
            'it is a virtual function: the line must match its card, '
            f'{function.parent_address}',
            function.parent_address,
        )


def check_vendor(
    function: pci_function.PciFunction, vendors: Mapping[str, str]
) -> None:
    """Check the vendor of a function.

    :param vendors: vendor id -> name; any if empty
    :raises DeviceError: it is of another vendor.
    """
    if vendors and function.vendor_id not in vendors:
        raise exceptions.DeviceError(
            f'{function.vendor_id}:{function.product_id} is no device of '
            f'{" or ".join(vendors.values())}'
        )
