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

"""Virtual functions that their vendor's VFIO driver turns into vGPUs.

On newer kernels NVIDIA's driver makes no mediated devices of a card's virtual
functions. A function gets its vGPU type by a write to
``nvidia/current_vgpu_type``, and then goes into a guest itself
(https://docs.nvidia.com/vgpu, "Vendor-Specific VFIO Framework").
"""

from collections.abc import Mapping
import re

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address

#: The type of a function without a vGPU, in sysfs and in
#: :meth:`VfioVgpu.set_type`.
NO_TYPE = '0'

#: The attribute with the types that fit now.
CREATABLE = 'nvidia/creatable_vgpu_types'
#: The attribute with the type.
CURRENT = 'nvidia/current_vgpu_type'
#: The attribute with the parameters, with which the next guest is started.
PARAMETERS = 'nvidia/vgpu_params'

# "557 : NVIDIA A40-1Q", below a line of headings.
_TYPE = re.compile(r'(?P<id>[0-9]+)\s*:\s*(?P<name>\S.*)')


class VfioVgpu:
    """The vGPU types of the virtual functions of one host."""

    def __init__(self, sysfs: sysfs_tree.Sysfs) -> None:
        self._sysfs = sysfs

    def types(self, address: pci_address.PciAddress) -> Mapping[str, str]:
        """Name -> id of the types that a function can be given now.

        These types fit beside the vGPUs of the card's other functions. If the
        card is full, there are none.

        :raises DeviceError: there is no list, or it cannot be read, or is
            malformed.
        """
        text = self._sysfs.read(address, CREATABLE)
        if text is None:
            raise exceptions.DeviceError(
                f'{CREATABLE} of {address} is missing'
            )
        types = {}
        for line in text.splitlines():
            match = _TYPE.fullmatch(line.strip())
            if match is not None:
                types[match['name']] = match['id']
            elif not line.strip().startswith('ID'):
                raise exceptions.DeviceError(
                    f'{CREATABLE} of {address} has a line that is no type: '
                    f'{line!r:.64}'
                )
        return types

    def current(self, address: pci_address.PciAddress) -> str | None:
        """The id of the type that a function has.

        :returns: :data:`NO_TYPE` if it has none; None if the function cannot
            get types
        :raises DeviceError: it cannot be read.
        """
        return self._sysfs.read(address, CURRENT)

    def parameters(self, address: pci_address.PciAddress) -> str:
        """How the vGPU is to behave, '' if nothing was set.

        :raises DeviceError: it cannot be read.
        """
        return self._sysfs.read(address, PARAMETERS) or ''

    def set_type(self, address: pci_address.PciAddress, type_id: str) -> None:
        """Set the type of a function, unless it has it already.

        :param type_id: :data:`NO_TYPE` removes the vGPU
        :raises DeviceError: the function refuses, or has another type
            afterwards.
        """
        if self.current(address) == type_id:
            return
        self._sysfs.write(address, CURRENT, type_id)
        current = self.current(address)
        if current != type_id:
            raise exceptions.DeviceError(
                f'{address} was given the vGPU type {type_id}, but has '
                f'{current}'
            )

    def set_parameters(
        self, address: pci_address.PciAddress, parameters: str
    ) -> None:
        """Set how the vGPU is to behave, unless it is set already.

        NVIDIA's driver refuses it while a guest has the vGPU, and may keep
        less than it was given. The function must have a type ("Setting vGPU
        Plugin Parameters", https://docs.nvidia.com/vgpu).

        :param parameters: ``enable_uvm=1,frame_rate_limiter=0``, or '' to
            clear them
        :raises DeviceError: the function refuses, or has others afterwards.
        """
        if self.parameters(address) == parameters:
            return
        self._sysfs.write(address, PARAMETERS, parameters)
        found = self.parameters(address)
        if found != parameters:
            raise exceptions.DeviceError(
                f'{PARAMETERS} of {address} was set to {parameters!r}, but is '
                f'{found[:200]!r}'
            )
