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

"""NVMe controllers; they are erased after each guest."""

from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import nvme_erasure
from nova_accel.drivers import nvme_subsystem
from nova_accel.drivers import pci_kind
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware

# Choose sanitize or format; for lines without "clean".
_BEST = 'erase'

# Disks behind SATA, SAS or RAID have other classes, and another driver.
_CLASS = '0108'


class NvmeDriver(pci_kind.PciKindDriver):
    """A controller: a card without virtual functions, or a virtual function.

    It is erased after each guest, unless the line says ``"clean": "none"``. By
    default it is sanitized if it can be and the host has all controllers of
    its subsystem, because sanitizing erases the whole subsystem. Otherwise its
    namespaces are formatted. Before that, libvirt has given it back to the
    host's driver ``nvme``.
    """

    kind = 'SSD'
    cleaning_methods = frozenset(
        {'none', 'reset', 'command', 'sanitize', 'format'}
    )

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        if not (function.class_code or _CLASS).startswith(_CLASS):
            raise exceptions.DeviceError(
                'it is no NVMe controller: its PCI class is '
                f'{function.class_code}'
            )
        result = super().discover(
            function,
            dataclasses.replace(spec, clean=spec.clean or _BEST),
            host,
        )
        if result is None:
            return None
        return dataclasses.replace(
            result,
            subsystem=self._subsystem(function),
            deployables=tuple(
                dataclasses.replace(
                    deployable,
                    handles=tuple(
                        dataclasses.replace(
                            handle,
                            identity=self._serial(
                                handle.address, self._sysfs.optional
                            ),
                        )
                        for handle in deployable.handles
                    ),
                )
                for deployable in result.deployables
            ),
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        """Check the serial number again: the drive may be a new one."""
        handle.check_same(
            dataclasses.replace(
                handle, identity=self._serial(handle.address, self._sysfs)
            )
        )
        super().plug(handle)

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        (method, *_command) = handle.cleaning or (_BEST,)
        if method not in ('sanitize', 'format', _BEST):
            super().clean(handle)
            return
        others = nvme_subsystem.others(self._sysfs, handle.address)
        host_use.HostUse(self._sysfs).check_disks((*handle.functions, *others))
        controller = nvme_erasure.NvmeController(
            self._sysfs, handle.address, handle.serial_number, others=others
        )
        is_virtual = self._sysfs.link(handle.address, 'physfn') is not None
        if method == 'sanitize' or (
            method == _BEST
            and not is_virtual
            and controller.can_be_sanitized()
        ):
            controller.sanitize(is_virtual)
        else:
            controller.format()

    def _subsystem(self, function: pci_function.PciFunction) -> str | None:
        """The drive behind a controller, which may have several.

        The NQN is not enough: that of some drives is the same for all of their
        kind. A virtual function has namespaces of its own.
        """
        if function.parent_address is not None:
            return None
        found = self.read_all(
            function,
            {
                name: f'nvme/{controller}/{name}'
                for controller in self._sysfs.optional.names(
                    function.address, 'nvme'
                )
                for name in nvme_subsystem.DRIVE
            },
        )
        return ' '.join(found.values()) if 'serial' in found else None

    def _serial(
        self, address: pci_address.PciAddress, sysfs: sysfs_tree.Sysfs
    ) -> str | None:
        """The drive's serial number, None while a guest has it."""
        names = sysfs.names(address, 'nvme')
        return (
            sysfs.read(address, f'nvme/{names[0]}/serial') or None
            if names
            else None
        )

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        names = self._sysfs.optional.names(function.address, 'nvme')
        return (
            {}
            if not names
            else self.read_all(
                function,
                {
                    name: f'nvme/{names[0]}/{name}'
                    for name in ('model', 'serial', 'firmware_rev')
                },
            )
        )

    def fault(self, function: pci_function.PciFunction) -> str | None:
        sysfs = self._sysfs.optional
        for name in sysfs.names(function.address, 'nvme'):
            if sysfs.read(function.address, f'nvme/{name}/state') == 'dead':
                return f'its controller {name} is dead'
        return None
