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

"""NVIDIA's vGPUs that are virtual functions with a vGPU type."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import nvidia_smi
from nova_accel.host import pci_function
from nova_accel.host import vfio_vgpu
from nova_accel.model import attach_handle
from nova_accel.model import device_spec
from nova_accel.model import hardware
from nova_accel.model import naming
from nova_accel.model import pci_address


class NvidiaVfioDriver(base.Driver):
    """A card, its virtual functions, and the vGPU type that each is to get.

    With Linux 6.8 and vGPU software 17, a virtual function gets a type by a
    write to sysfs. It then goes into a guest bound to NVIDIA's own driver
    (https://docs.nvidia.com/vgpu, "Creating an NVIDIA vGPU on a Linux with KVM
    Hypervisor that Uses a Vendor-Specific VFIO Framework"). MIG-backed types
    are like any others; the operator creates their GPU instances.

    Only the card knows what still fits on it, and each function reports that
    for itself. If the card has room for one more unit, all functions offer it.
    So the operator says how many units of each type are wanted, and the first
    functions get the first type.
    """

    line_keys = frozenset({'live_migratable', 'vgpu_types'})
    cleaning_methods = frozenset({'none'})

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        pci_kind.check_vendor(function, {'10de': 'NVIDIA'})
        pci_kind.check_card(function)
        if not spec.vgpu_types:
            raise exceptions.DeviceError(
                'the line must have "vgpu_types", such as {"558": 4}'
            )
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        functions = [
            address
            for address in function.virtual_functions
            if address in host.functions and vgpus.current(address) is not None
        ]
        wanted = sum(units for _type, units in spec.vgpu_types)
        if wanted > len(functions):
            raise exceptions.DeviceError(
                f'the line has {wanted} vGPUs, but {len(functions)} of its '
                f'{len(function.virtual_functions)} virtual functions can '
                'be given a type'
            )
        known = facts.virtual(facts.of(function, spec, 'VGPU'))
        deployables = []
        left = iter(functions)
        for type_id, units in spec.vgpu_types:
            mine = [next(left) for _unit in range(units)]
            handles = tuple(self._handles(mine, type_id, host, vgpus))
            if handles:
                deployables.append(
                    known.deployable(
                        f'nvidia-{type_id}',
                        handles,
                        naming.vgpu_trait(
                            known.vendor,
                            function.product_id,
                            f'nvidia-{type_id}',
                        ),
                    )
                )
        if not deployables:
            raise exceptions.DeviceError(
                'its virtual functions can be given none of the line\'s '
                '"vgpu_types"'
            )
        result = known.device(deployables)
        # Cards of other types are not interchangeable with this one.
        return dataclasses.replace(
            result,
            operator_traits=result.operator_traits.union(
                *(each.traits for each in deployables)
            ),
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        if handle.vgpu_type is None:
            raise exceptions.DeviceError(f'{handle.address} is no vGPU')
        vfio_vgpu.VfioVgpu(self._sysfs).set_type(
            handle.address, handle.vgpu_type
        )

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """NVIDIA's driver saves the state of a vGPU."""
        if handle.vgpu_type is None:
            super().check_migratable(handle)

    def migration_facts(
        self, handle: attach_handle.AttachHandle
    ) -> Mapping[str, str]:
        """What NVIDIA demands to be equal.

        See "Migrating a VM Configured with NVIDIA vGPU" at
        https://docs.nvidia.com/vgpu. The plugin of a vGPU is started with
        ``vgpu_params``, such as ``enable_uvm=1``.
        """
        card = self._sysfs.link(handle.address, 'physfn')
        if card is None:
            raise exceptions.DeviceError(f'{handle.address} has no card')
        card_address = pci_address.PciAddress.parse(card)
        version = self._sysfs.read(card_address, 'driver/module/version')
        if not version:
            raise exceptions.DeviceError(
                f'driver/module/version of {card} is empty or absent: is '
                "NVIDIA's driver loaded?"
            )
        return {
            'the product of the GPU': (
                self._sysfs.read(card_address, 'device') or 'unknown'
            ),
            'the vGPU type': handle.vgpu_type or vfio_vgpu.NO_TYPE,
            'the branch of the driver': version.partition('.')[0],
            'the ECC mode': nvidia_smi.ecc_mode(card_address),
            'vgpu_params': vfio_vgpu.VfioVgpu(self._sysfs).parameters(
                handle.address
            ),
        }

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        # A function with another type now is not the one that was plugged.
        if (
            handle.vgpu_type is not None
            and vgpus.current(handle.address) == handle.vgpu_type
        ):
            vgpus.set_type(handle.address, vfio_vgpu.NO_TYPE)

    def _handles(
        self,
        functions: list[pci_address.PciAddress],
        type_id: str,
        host: libvirt_devices.HostDevices,
        vgpus: vfio_vgpu.VfioVgpu,
    ) -> Iterator[attach_handle.AttachHandle]:
        """A handle for each function that has the type or can get it."""
        for address in functions:
            current = vgpus.current(address)
            if current == type_id or (
                current == vfio_vgpu.NO_TYPE
                and type_id in vgpus.types(address).values()
            ):
                yield attach_handle.AttachHandle(
                    naming.derived_uuid(
                        self._node_uuid,
                        host.functions[address].name,
                        f'nvidia-{type_id}',
                    ),
                    address,
                    vgpu_type=type_id,
                    is_managed=False,
                )
