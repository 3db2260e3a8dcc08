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

"""FPGAs that the kernel's FPGA subsystem knows, of any vendor."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib

from nova_accel import exceptions
from nova_accel.drivers import fpga
from nova_accel.drivers import fpga_programming
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.privileged import fpga as privileged_fpga

# The driver of a card while a guest has it whole.
_GUEST = 'vfio-pci'


class FpgaRegionDriver(fpga.FpgaDriver):
    """A card with ``fpga_region`` devices below its PCI function.

    See the kernel's ``Documentation/ABI/testing/sysfs-class-fpga-region`` and
    ``sysfs-class-fpga-manager``. ``compat_id`` is the type of a region. A
    manager's ``state`` ends in "error" when programming has failed.

    It is programmed through its manager's attribute ``firmware``, which the
    kernels of AMD and Altera have
    (https://docs.amd.com/r/en-US/Linux-Drivers/FPGA-programming-using-sysfs-attributes);
    the upstream kernel leaves programming to each driver. Each write begins
    from the start, whatever went wrong before. It bypasses the bridges that,
    by the kernel's ``Documentation/driver-api/fpga/fpga-region.rst``, should
    be closed meanwhile. So it must not be done while a guest has an
    accelerator. The kernel does not say what is loaded; ``contents_attribute``
    may.
    """

    line_keys = fpga.FpgaDriver.line_keys | {'contents_attribute'}
    repeats_programming = True

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        found = super().discover(function, spec, host)
        if spec.contents_attribute is None or not found.regions:
            return found
        if len(found.regions) > 1:
            raise exceptions.DeviceError(
                f'"contents_attribute": "{spec.contents_attribute}" cannot '
                f'tell its {len(found.regions)} regions apart'
            )
        return dataclasses.replace(
            found,
            regions=(
                dataclasses.replace(
                    found.regions[0],
                    contents_attribute=spec.contents_attribute,
                ),
            ),
        )

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        manager = self._manager_of(device, region)
        state = self._sysfs.read(
            device.address, f'fpga_manager/{manager}/state'
        )
        if state != 'operating':
            raise exceptions.DeviceError(
                f'the FPGA manager of {device.address} is in the state '
                f'"{state}"'
            )
        if region.contents_attribute is None:
            # A guest that had the whole card may have programmed it. The
            # kernel removed the manager for that guest, so its new one has
            # another identity.
            identity = self._sysfs.identity(
                device.address, f'fpga_manager/{manager}'
            )
            return f'{state} {identity}'
        text = self._sysfs.read(device.address, region.contents_attribute)
        if not text:
            raise exceptions.DeviceError(
                f'{region.contents_attribute} of {device.address} says nothing'
            )
        return text

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        manager = self._manager_of(device, region)
        if 'firmware' not in self._sysfs.names(
            device.address, f'fpga_manager/{manager}'
        ):
            raise fpga_programming.refusal(
                device, region, f'{manager} has no attribute "firmware"'
            )
        fpga_programming.call(
            device,
            region,
            timeout_s,
            privileged_fpga.load_firmware,
            device.address,
            manager,
            bitstream,
        )
        self.loaded(device, region)

    def check(self, function: pci_function.PciFunction) -> None:
        pci_kind.check_card(function)
        if function.driver != _GUEST:
            self._check_known(function)

    def _check_known(self, function: pci_function.PciFunction) -> None:
        if not self._sysfs.names(function.address, 'fpga_region'):
            raise exceptions.DeviceError(
                'the kernel knows no fpga_region of it: is its driver loaded '
                'on the host?'
            )

    def whole_region(
        self, function: pci_function.PciFunction
    ) -> fpga.FpgaRegion | None:
        if function.driver == _GUEST:
            return fpga.FpgaRegion(None, ())
        paths = self.region_paths(function)
        return (
            fpga.FpgaRegion(
                self._type_uuid(function, paths[0]),
                (),
            )
            if len(paths) == 1
            else None
        )

    def regions(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> Sequence[fpga.FpgaRegion]:
        self._check_known(function)
        return fpga.on_virtual_functions(
            function,
            host,
            [
                self._type_uuid(function, path)
                for path in self.region_paths(function)
            ],
            {
                part.address: self.function_uuid(part)
                for part in host.parts(function)
            },
        )

    def _type_uuid(
        self, function: pci_function.PciFunction, path: str
    ) -> str | None:
        return fpga.one_uuid(
            self._sysfs.optional, function.address, f'{path}/compat_id'
        )

    def region_paths(
        self, function: pci_function.PciFunction
    ) -> Sequence[str]:
        """The paths of the programmable regions in sysfs."""
        return [
            f'fpga_region/{name}'
            for name in in_order(
                self._sysfs.names(function.address, 'fpga_region')
            )
        ]

    def function_uuid(self, function: pci_function.PciFunction) -> str | None:
        """The uuid of a virtual function's function, None if unknown."""
        return None

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        names = [name for _state, name in self._managers(function) if name]
        return {'manager': ', '.join(names)} if names else {}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        for state, _name in self._managers(function):
            if (state or '').endswith('error'):
                return f'its FPGA manager is in the state "{state}"'
        return None

    def _manager_of(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        """:raises DeviceError: it is not known which manager it is."""
        names = self._sysfs.names(device.address, 'fpga_manager')
        if len(names) != 1 or device.regions != (region,):
            raise exceptions.DeviceError(
                f'{device.address} has {len(names)} FPGA managers for '
                f'{len(device.regions)} regions: it is not known which one '
                f'has {region.name}'
            )
        return names[0]

    def _managers(
        self,
        function: pci_function.PciFunction,
    ) -> Iterator[tuple[str | None, str | None]]:
        """State and name of each FPGA manager."""
        sysfs = self._sysfs.optional
        for manager in sysfs.names(function.address, 'fpga_manager'):
            yield (
                sysfs.read(function.address, f'fpga_manager/{manager}/state'),
                sysfs.read(function.address, f'fpga_manager/{manager}/name'),
            )


def in_order(names: Sequence[str]) -> list[str]:
    """``region2`` before ``region10``."""
    return sorted(names, key=lambda name: (len(name), name))
