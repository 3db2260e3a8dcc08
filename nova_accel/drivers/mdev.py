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


"""Cards that make mediated devices on demand: vGPUs, mostly."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.host import node_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import device_spec
from nova_accel.model import naming

# More than any card makes; a search for ours among those that exist.
_MOST_UNITS = 256


class MdevDriver(base.Driver):
    """A card and one type of mediated device, which it makes when plugged.

    Where the virtual functions are the parents, as on SR-IOV cards of NVIDIA
    (https://docs.nvidia.com/vgpu), the card is still one device. The devices
    are transient: the host forgets them when it reboots, and each start of
    the guest makes them again.
    """

    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices.HostDevices) -> device.Device:
        parents = _parents(function, host)
        mdev_type = _mdev_type(parents, spec)
        known = facts.of(function, spec)
        if known.type == 'GPU':
            known = dataclasses.replace(known, type='VGPU')
        handles = tuple(handle for parent in parents
                        for handle in self._handles(parent, mdev_type, host))
        if not handles:
            raise exceptions.DeviceError(
                f'it can make no more {mdev_type}: all it can make are there '
                'and none is ours')
        trait = naming.vgpu_trait(
            known.vendor, function.product_id, mdev_type)
        result = known.device([known.deployable(mdev_type, handles, trait)])
        # Cards that make another type are not interchangeable with this one.
        return dataclasses.replace(
            result, operator_traits=result.operator_traits | {trait})

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        if handle.mdev_type is None:
            raise exceptions.DeviceError(
                f'{handle.address} is no parent of mediated devices')
        self._node_devices.create_mdev(
            handle.uuid, handle.address, handle.mdev_type)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """Nova looks at the versions, and the vendor's driver at its own."""

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        self._node_devices.destroy_mdev(handle.uuid)

    def _handles(
        self, parent: pci_function.PciFunction, mdev_type: str,
        host: node_devices.HostDevices,
    ) -> Iterator[attach_handle.AttachHandle]:
        """One for each unit that is ours already or can still be made.

        What others have made of the card is missing from what it can make.
        """
        made = {mdev.uuid for mdev in host.mdevs
                if (mdev.parent, mdev.type) == (parent.address, mdev_type)}
        available = parent.mdev_types.get(mdev_type, 0)
        for index in range(max(_MOST_UNITS, available) if made
                           else available):
            uuid = naming.derived_uuid(
                self._node_uuid, parent.name, mdev_type, str(index))
            if uuid not in made:
                if not available:
                    continue
                available -= 1
            yield attach_handle.AttachHandle(uuid, parent.address, mdev_type)


def _parents(
    function: pci_function.PciFunction, host: node_devices.HostDevices,
) -> Sequence[pci_function.PciFunction]:
    """The functions of the card that make mediated devices.

    :raises DeviceError: there is none.
    """
    if function.mdev_types:
        return [function]
    parents = [host.functions[address]
               for address in function.virtual_functions
               if address in host.functions
               and host.functions[address].mdev_types]
    if not parents:
        raise exceptions.DeviceError(
            'it makes no mediated devices: is the vendor\'s driver loaded '
            'on the host?')
    return parents


def _mdev_type(parents: Sequence[pci_function.PciFunction],
               spec: device_spec.DeviceSpec) -> str:
    """:raises DeviceError: the choice is not clear, or not there."""
    types = sorted({type_ for parent in parents
                    for type_ in parent.mdev_types})
    if spec.mdev_type is None and len(types) == 1:
        return types[0]
    if spec.mdev_type in types:
        return spec.mdev_type
    raise exceptions.DeviceError(
        f'the line must have an "mdev_type" that it makes: '
        f'{", ".join(types)}')
