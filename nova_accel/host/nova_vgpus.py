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


"""``[devices]`` and ``[mdev_*]``: the cards on which Nova makes vGPUs."""

from nova.conf import devices as nova_devices_conf

from nova_accel import conf
from nova_accel.host import pci_function

CONF = conf.CONF


class Vgpus:
    """The options, read as by ``LibvirtDriver._get_supported_vgpu_types``.

    The number (``max_instances``) and the resource class (``mdev_class``) do
    not matter, because our cards must be ours alone.
    """

    def __init__(self) -> None:
        nova_devices_conf.register_dynamic_opts(CONF)
        self._type_of: dict[str, str] = {}
        self._default: str | None = None
        for mdev_type in CONF.devices.enabled_mdev_types:
            addresses = CONF[f'mdev_{mdev_type}'].device_addresses
            self._type_of.update(
                (address.lower(), mdev_type) for address in addresses
            )
            if not addresses and self._default is None:
                self._default = mdev_type

    def line_for(self, function: pci_function.PciFunction) -> str | None:
        """The line by which Nova claims a function, None if none does.

        A function that a line names is Nova's even if it does not offer the
        type now. With another driver or mode it may.
        """
        mdev_type = self._type_of.get(str(function.address))
        if mdev_type is not None:
            addresses = CONF[f'mdev_{mdev_type}'].device_addresses
            return (
                f'[mdev_{mdev_type}] device_addresses = {",".join(addresses)}'
            )
        if self._default in function.mdev_types:
            return (
                f'[devices] enabled_mdev_types = '
                f'{",".join(CONF.devices.enabled_mdev_types)} (without '
                f'[mdev_{self._default}] device_addresses it means all '
                f'other cards that make {self._default})'
            )
        return None
