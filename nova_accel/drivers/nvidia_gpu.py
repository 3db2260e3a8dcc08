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

"""NVIDIA's GPUs as a whole."""

import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware

#: The PCI base class of GPUs. NVSwitches are bridges; a guest that had one
#: could take the links of all others.
_DISPLAY = '03'


class NvidiaGpuDriver(pci_kind.PciKindDriver):
    """A GPU with the audio, USB and USB-C functions of its card, as one unit.

    The GPU is function 0 of its slot; the slot's other functions belong to it
    (https://docs.nvidia.com/vgpu, "Using GPU Pass-Through"). A line may ask
    for its whole IOMMU group. A card with virtual functions or mediated
    devices is not offered.
    """

    kind = 'GPU'
    vendors = {'10de': 'NVIDIA'}

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        if function.parent_address is not None:
            raise exceptions.PartOfCard(
                'it is a virtual function, which is no whole GPU',
                function.parent_address,
            )
        if function.address.function != 0:
            raise exceptions.PartOfCard(
                'it is not function 0 of its slot, and only that is the GPU',
                dataclasses.replace(function.address, function=0),
            )
        if not (function.class_code or _DISPLAY).startswith(_DISPLAY):
            raise exceptions.DeviceError(
                f'it is no GPU: its PCI class is {function.class_code}'
            )
        mdevs = sum(mdev.parent == function.address for mdev in host.mdevs)
        if mdevs:
            raise exceptions.DeviceError(
                f'it is carved: it has {mdevs} mediated devices'
            )
        return super().discover(
            function,
            spec
            if spec.unit is device_spec_keys.UnitKind.IOMMU_GROUP
            else dataclasses.replace(
                spec, unit=device_spec_keys.UnitKind.SLOT
            ),
            host,
        )
