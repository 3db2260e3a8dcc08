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
import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import device_cleaning
from nova_accel.drivers import facts
from nova_accel.host import attachable
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import vfio_denylist
from nova_accel.host import vfio_vgpu
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware

#: The driver that libvirt binds if the kernel has no vendor's driver for the
#: function.
_GENERIC = 'vfio-pci'

# The drivers that save a device's state. A driver of VFIO need not:
# nvgrace_gpu_vfio_pci does not. In Linux they are those below drivers/vfio/pci
# that set migration_ops
# (https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/vfio/pci).
# The last one is NVIDIA's own (https://docs.nvidia.com/vgpu). The kernel tells
# it only to the program that has the device open, which is the guest's QEMU.
_MIGRATING = frozenset(
    {
        'hisi_acc_vfio_pci',
        'mlx5_vfio_pci',
        'pds_vfio_pci',
        'qat_vfio_pci',
        'virtio_vfio_pci',
        'xe_vfio_pci',
        'nvidia_vgpu_vfio',
    }
)

# The functions of Alveo cards that write the flash and reset the card (XRT's
# src/runtime_src/core/pcie/driver/linux/xocl/devices.h).
_MANAGE_A_CARD = frozenset(
    ('10ee', product)
    for product in (
        *('5000', '5004', '500c', '5020', '5044', '5048'),
        *('5050', '5058', '505c', '5094', '513c'),
    )
)


class PciDriver(base.Driver):
    """A function, interchangeable with its like unless the line says no.

    libvirt unbinds it from its host driver and binds it again. By the line's
    ``unit``, the other functions of its slot or IOMMU group may go along.
    """

    line_keys = frozenset({'live_migratable', 'unit'})

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
        _check_takes_no_manager(function, frozenset((address, *others)), host)
        self._check_no_vgpus((address, *others))
        if spec.clean == 'reset':
            device_cleaning.check_reset(
                self._sysfs, (address, *others), host.functions
            )
        known = facts.of(function, spec)
        handle = attach_handle.AttachHandle(
            naming.derived_uuid(self._node_uuid, function.name, 'handle'),
            address,
            physical_network=spec.physical_network,
            further_functions=tuple(others),
        )
        refusals = [
            vfio_denylist.reason(self._sysfs, host.functions[each])
            for each in handle.functions
            if each in host.functions
        ]
        return dataclasses.replace(
            known.device(
                [known.deployable('function', [handle])], pooled=True
            ),
            fault=next(filter(None, refusals), None),
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        """Check that no one on the host uses it."""
        host_use.HostUse(self._sysfs).check_disks(handle.functions)

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        host_use.HostUse(self._sysfs).check_disks(handle.functions)
        super().clean(handle)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """While a guest has it, a function is bound to a driver of VFIO.

        Some vendors' drivers, such as ``mlx5_vfio_pci``, save a device's
        state, see
        https://docs.kernel.org/driver-api/vfio-pci-device-specific-driver-acceptance.html
        The operator's line may name the devices of another such driver.
        """
        for address in handle.functions:
            self._check_driver(address, bool(handle.live_migratable))

    def _check_driver(
        self, address: pci_address.PciAddress, is_stated: bool
    ) -> None:
        driver = self._node_devices.function(address).driver or 'no driver'
        name = driver.replace('-', '_')
        if name not in _MIGRATING and not (
            is_stated and 'vfio' in name and driver != _GENERIC
        ):
            raise exceptions.DeviceError(
                f'{address} is bound to {driver}, which cannot migrate it '
                'live; if a driver of its vendor can, the line needs '
                '"live_migratable": true',
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
                    f'by its {vfio_vgpu.CURRENT}, which a driver like '
                    'nvidia_vfio offers'
                )


def _check_takes_no_manager(
    function: pci_function.PciFunction,
    unit: frozenset[pci_address.PciAddress],
    host: libvirt_devices.HostDevices,
) -> None:
    """:raises DeviceError: it manages what others get of its card."""
    if (function.vendor_id, function.product_id) not in _MANAGE_A_CARD:
        return
    card = attachable.unit(
        function, device_spec_keys.UnitKind.SLOT, host.functions
    )
    if not unit.issuperset(card):
        raise exceptions.DeviceError(
            'it manages its card: the driver xrt keeps it on the host, and '
            '"unit": "slot" hands over the whole card'
        )
