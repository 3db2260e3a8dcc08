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


"""What Nova's own configuration takes of the host's devices."""

from nova import exception
from nova.conf import devices as nova_devices_conf
from nova.pci import whitelist

from nova_accel import conf
from nova_accel.host import pci_function

CONF = conf.CONF


class NovaClaims:
    """``[pci] device_spec`` and ``[devices] enabled_mdev_types``, read once.

    In doubt Nova has the device: a line that may mean it is a claim.

    :raises nova.exception.NovaException: a line of ``[pci] device_spec``
        cannot be used; Nova does not start with it either.
    """

    def __init__(self) -> None:
        self._whitelists = [(line, whitelist.Whitelist([line]))
                            for line in CONF.pci.device_spec]
        self._mdev_type_of, self._default_mdev_type = _mdev_types()

    def line_for(self, function: pci_function.PciFunction) -> str | None:
        """The line of Nova's configuration that takes a function, if any."""
        return self._passthrough(function) or self._vgpu(function)

    def _passthrough(self, function: pci_function.PciFunction) -> str | None:
        device = {
            'address': str(function.address),
            'parent_addr': (None if function.parent_address is None
                            else str(function.parent_address)),
            'vendor_id': function.vendor_id,
            'product_id': function.product_id,
            # A line with remote_managed matches devices that have one.
            'capabilities': {'vpd': {'card_serial_number': 'unknown'}}}
        for line, matcher in self._whitelists:
            try:
                if matcher.device_assignable(device) is not None:
                    return f'[pci] device_spec = {line}'
            except exception.PciConfigInvalidSpec:
                # Nova leaves alone what has a PCI domain above ffff.
                continue
        return None

    def _vgpu(self, function: pci_function.PciFunction) -> str | None:
        address = str(function.address)
        if address in self._mdev_type_of:
            return (f'[mdev_{self._mdev_type_of[address]}] '
                    f'device_addresses = {address}')
        if self._default_mdev_type in function.mdev_types:
            return (f'[devices] enabled_mdev_types = '
                    f'{self._default_mdev_type} (without device_addresses '
                    f'in [mdev_{self._default_mdev_type}] it means all cards '
                    'that make it)')
        return None


def _mdev_types() -> tuple[dict[str, str], str | None]:
    """Address -> the type that Nova makes there, and that of the rest.

    As ``LibvirtDriver._get_supported_vgpu_types`` has it: the first type
    without addresses is that of all other cards.
    """
    nova_devices_conf.register_dynamic_opts(CONF)
    by_address: dict[str, str] = {}
    default: str | None = None
    for mdev_type in CONF.devices.enabled_mdev_types:
        addresses = CONF[f'mdev_{mdev_type}'].device_addresses
        by_address.update(
            (address.lower(), mdev_type) for address in addresses)
        if not addresses and default is None:
            default = mdev_type
    return by_address, default
