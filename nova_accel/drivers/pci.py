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


"""Whole PCI functions, physical or virtual, handed to guests as they are."""

from collections.abc import Iterable

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import cleaning
from nova_accel.drivers import facts
from nova_accel.host import attachable
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import vfio_vgpu
from nova_accel.model import attach_handle
from nova_accel.model import device_spec
from nova_accel.model import hardware
from nova_accel.model import naming
from nova_accel.model import pci_address

#: The driver that libvirt binds if the kernel has no vendor's driver for the
#: function.
_GENERIC = 'vfio-pci'


class PciDriver(base.Driver):
    """A function, interchangeable with its like unless the line says no.

    libvirt unbinds it from its host driver and binds it again. By the line's
    ``unit``, the other functions of its slot or IOMMU group may go along.
    """

    line_keys = frozenset({'unit'})

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        if function.virtual_functions:
            if spec.sriov_numvfs is not None:
                return None
            raise exceptions.DeviceError(
                f'its {len(function.virtual_functions)} virtual functions '
                'are enabled: they can be offered, it cannot'
            )
        address, *others = attachable.unit(function, spec.unit, host.functions)
        self._check_no_vgpus((address, *others))
        if spec.clean == 'reset':
            cleaning.check_reset(
                self._sysfs, (address, *others), host.functions
            )
        known = facts.of(function, spec)
        handle = attach_handle.AttachHandle(
            naming.derived_uuid(self._node_uuid, function.name, 'handle'),
            address,
            physical_network=spec.physical_network,
            further_functions=tuple(others),
        )
        return known.device(
            [known.deployable('function', [handle])], pooled=True
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        """Check that nobody on the host uses it."""
        host_use.HostUse(self._sysfs).check_disks(handle.functions)

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        host_use.HostUse(self._sysfs).check_disks(handle.functions)
        super().clean(handle)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """While a guest has it, a function is bound to a driver of VFIO.

        In a guest a function is bound to a VFIO driver. Only vendors' drivers,
        such as ``mlx5_vfio_pci``, save a device's state, see
        https://docs.kernel.org/driver-api/vfio-pci-device-specific-driver-acceptance.html
        """
        for address in handle.functions:
            self._check_driver(address)

    def _check_driver(self, address: pci_address.PciAddress) -> None:
        driver = self._node_devices.function(address).driver
        if driver == _GENERIC or 'vfio' not in (driver or ''):
            raise exceptions.DeviceError(
                f'{address} is bound to {driver or "no driver"}, which '
                'cannot migrate it live',
                public='an accelerator of the server cannot be migrated live',
            )

    def _check_no_vgpus(
        self, functions: Iterable[pci_address.PciAddress]
    ) -> None:
        """:raises DeviceError: a function needs a vGPU type to be usable."""
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        for address in functions:
            if vgpus.current(address) is not None:
                raise exceptions.DeviceError(
                    f'{address} is a part of a carved card: it is a vGPU, '
                    'which a driver like nvidia_vfio offers'
                )
