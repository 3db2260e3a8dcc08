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

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.host import node_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import device_spec
from nova_accel.model import naming

#: libvirt binds it if the kernel has none of the vendor's for the function.
_GENERIC = 'vfio-pci'


class PciDriver(base.Driver):
    """A function is interchangeable with its like, unless the line says no.

    libvirt unbinds it from its host driver and binds it again.
    """

    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices.HostDevices) -> device.Device:
        if function.virtual_functions:
            raise exceptions.DeviceError(
                f'its {len(function.virtual_functions)} virtual functions '
                'are enabled: they can be offered, it cannot')
        known = facts.of(function, spec)
        handle = attach_handle.AttachHandle(
            naming.derived_uuid(self._node_uuid, function.name, 'handle'),
            function.address, physical_network=spec.physical_network)
        return known.device(
            [known.deployable('function', [handle])], pooled=True)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """While a guest has it, a function is bound to a driver of VFIO.

        Those of vendors (``mlx5_vfio_pci``) save a device's state, see
        https://docs.kernel.org/driver-api/vfio-pci-device-specific-driver-acceptance.html
        """
        driver = self._node_devices.function(handle.address).driver
        if driver == _GENERIC or 'vfio' not in (driver or ''):
            raise exceptions.DeviceError(
                f'{handle.address} is bound to {driver or "no driver"}, which '
                'cannot migrate it live')
