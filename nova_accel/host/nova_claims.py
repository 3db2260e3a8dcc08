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


"""The host's devices that Nova's own configuration claims."""

from collections.abc import Iterable
from collections.abc import Iterator

from nova_accel.host import libvirt_devices
from nova_accel.host import nova_passthrough
from nova_accel.host import nova_providers
from nova_accel.host import nova_vgpus
from nova_accel.host import pci_function
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout


class NovaClaims:
    """The claims of Nova's configuration, which is read once.

    In doubt a device is Nova's: a line that may mean the device is a claim.

    :param nodename: Nova's and Placement's name of the compute node
    :param node_uuid: the uuid of its root resource provider
    :raises nova.exception.NovaException: a line cannot be used; Nova does not
        start with it either.
    """

    def __init__(self, nodename: str, node_uuid: str) -> None:
        self._nodename, self._node_uuid = nodename, node_uuid
        self._passthrough = nova_passthrough.Passthrough()
        self._vgpus = nova_vgpus.Vgpus()
        self._provider_configs = nova_providers.ProviderConfigs(
            nodename, node_uuid
        )

    def on_functions(
        self,
        addresses: Iterable[pci_address.PciAddress],
        host: libvirt_devices.HostDevices,
    ) -> str | None:
        """Why functions of the host cannot be ours; None if they can.

        Claims on their physical and virtual functions count as well, because a
        guest with a physical function takes its virtual ones along.
        """
        for function, what in _concerned(addresses, host):
            line = self._passthrough.line_for(
                function, host
            ) or self._vgpus.line_for(function)
            if line is not None:
                return f'Nova claims {what} too: {line}'
        return None

    def on_device(
        self, device: hardware.Device, host: libvirt_devices.HostDevices
    ) -> str | None:
        """Why a device of the host cannot be ours; None if it can."""
        return (
            self.on_functions(device.addresses, host)
            or self._on_providers(device)
            or self._on_ownership(host)
        )

    def _on_providers(self, device: hardware.Device) -> str | None:
        layout = provider_layout.layout(
            self._nodename, self._node_uuid, [device]
        )
        for provider in layout.providers:
            line = self._provider_configs.line_for(provider)
            if line is not None:
                return (
                    'Nova claims its resource provider '
                    f'{provider.name} too: {line}'
                )
        return None

    def _on_ownership(self, host: libvirt_devices.HostDevices) -> str | None:
        """Why our providers on the host cannot be told from Nova's."""
        trait = naming.OWNERSHIP_TRAIT
        line = self._provider_configs.line_giving(
            trait
        ) or self._passthrough.line_giving(trait, host)
        if line is not None:
            return (
                f'Nova claims {trait} too, by which the resource '
                f'providers of nova_accel are known: {line}'
            )
        return None


def _concerned(
    addresses: Iterable[pci_address.PciAddress],
    host: libvirt_devices.HostDevices,
) -> Iterator[tuple[pci_function.PciFunction, str]]:
    """The functions that no one else may hand out, and their description."""
    parts = [
        host.functions[address]
        for address in sorted(addresses)
        if address in host.functions
    ]
    for part in parts:
        yield part, str(part.address)
    for part in parts:
        for address in part.virtual_functions:
            if address in host.functions:
                yield (
                    host.functions[address],
                    f'{address}, a virtual function of {part.address},',
                )
        card = (
            None
            if part.parent_address is None
            else host.functions.get(part.parent_address)
        )
        if card is not None:
            yield (
                card,
                f'{card.address}, the physical function of {part.address},',
            )
