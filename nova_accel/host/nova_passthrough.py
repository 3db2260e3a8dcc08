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


"""``[pci] device_spec``: the PCI functions that Nova hands out."""

from nova import exception
from nova.compute import pci_placement_translator
from nova.pci import devspec
from nova.pci import whitelist

from nova_accel import conf
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function

CONF = conf.CONF


class Passthrough:
    """The lines of the option, read once, by Nova's own rules.

    :raises nova.exception.NovaException: a line cannot be used; Nova does not
        start with it either.
    """

    def __init__(self) -> None:
        self._lines = [
            (line, whitelist.Whitelist([line]))
            for line in CONF.pci.device_spec
        ]

    def line_for(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> str | None:
        """The line by which Nova claims a function, None if none does."""
        match = self._match(function, host)
        return None if match is None else _named(match[0])

    def line_giving(
        self, trait: str, host: libvirt_devices.HostDevices
    ) -> str | None:
        """A line that makes Nova set a trait on its own provider, or None."""
        if not CONF.pci.report_in_placement or not any(
            _gives(spec, trait)
            for _, lines in self._lines
            for spec in lines.specs
        ):
            return None
        matches = (
            self._match(function, host) for function in host.functions.values()
        )
        return next(
            (
                _named(match[0])
                for match in matches
                if match is not None and _gives(match[1], trait)
            ),
            None,
        )

    def _match(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> tuple[str, devspec.PciDeviceSpec] | None:
        """The first line that matches, with the specification in it."""
        device = _described(function, host)
        try:
            return next(
                (
                    (line, spec)
                    for line, lines in self._lines
                    if (spec := lines.device_assignable(device)) is not None
                ),
                None,
            )
        except exception.PciConfigInvalidSpec:
            # Nova ignores functions with a PCI domain above ffff.
            return None


def _described(
    function: pci_function.PciFunction, host: libvirt_devices.HostDevices
) -> dict[str, object]:
    """A function as Nova's ``Host`` describes it, to compare with lines."""
    card = (
        None
        if function.parent_address is None
        else host.functions.get(function.parent_address)
    )
    serial = function.card_serial_number or (
        None if card is None else card.card_serial_number
    )
    return {
        'address': str(function.address),
        'parent_addr': (
            None
            if function.parent_address is None
            else str(function.parent_address)
        ),
        'vendor_id': function.vendor_id,
        'product_id': function.product_id,
        'capabilities': {'vpd': {'card_serial_number': serial}},
    }


def _gives(spec: devspec.PciDeviceSpec, trait: str) -> bool:
    """Whether the devices that a line matches have the trait in Placement.

    Nova does not publish devices with a physical network.
    """
    tags = spec.get_tags()
    return not tags.get(
        'physical_network'
    ) and trait in pci_placement_translator.get_traits(tags.get('traits', ''))


def _named(line: str) -> str:
    return f'[pci] device_spec = {line}'
