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

"""Intel's and AMD's GPUs whose virtual functions are handed out."""

from nova_accel import exceptions
from nova_accel.drivers import facts
from nova_accel.drivers import pci
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware

_VENDORS = {'8086': 'Intel', '1002': 'AMD'}


class GpuSriovDriver(pci.PciDriver):
    """A card that the host keeps, with its interchangeable functions.

    Intel Data Center GPU Flex and Max with the kernel's ``i915`` or ``xe``
    (https://docs.kernel.org/gpu/xe), and AMD's with its ``gim``
    (https://github.com/amd/MxGPU-Virtualization), share their engines and
    memory evenly among the virtual functions that are enabled. The card's
    driver schedules them, so no guest gets the card itself.
    """

    kind = 'VGPU'
    line_keys = frozenset({'live_migratable'})

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        pci_kind.check_vendor(function, _VENDORS)
        pci_kind.check_card(function)
        units = host.parts(function)
        if not units:
            raise exceptions.DeviceError('it has no virtual functions')
        known = facts.virtual(facts.of(function, spec, 'VGPU'))
        if known.type != 'VGPU':
            raise exceptions.DeviceError(
                f'its type is {known.type}, and this driver offers parts of '
                'GPUs: the line must have the driver of its kind'
            )
        return known.device(
            [
                known.deployable(
                    'functions',
                    [
                        attach_handle.AttachHandle(
                            naming.derived_uuid(
                                self._node_uuid, unit.name, 'handle'
                            ),
                            unit.address,
                        )
                        for unit in units
                    ],
                )
            ]
        )
