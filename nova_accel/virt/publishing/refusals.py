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

"""Why functions of a host are not offered although lines match them."""

import dataclasses

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.host import libvirt_devices
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec

#: How many functions a text names.
_MAX_NAMED = 3


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why functions that a line matches are not offered by it.

    ``addresses`` are the functions, ``line`` is the line as it is written.
    ``is_until_start`` says that nova-compute makes what is missing when it
    starts.
    """

    addresses: tuple[str, ...]
    line: str
    why: str
    is_until_start: bool = False

    @property
    def text(self) -> str:
        """The words of the log, with the first of the functions."""
        return (
            f'{reason.some(self.addresses, _MAX_NAMED)} '
            f'([nova_accel] device_spec = {self.line}): {self.why}'
        )


class Refusals:
    """The refusals of one look; functions of a card with one cause share it.

    :param host: of the look
    """

    def __init__(self, host: libvirt_devices.HostDevices) -> None:
        self._host = host
        # Card, line and reason without an address -> the first refusal, and
        # the functions that it is true of.
        self._found: dict[
            tuple[pci_address.PciAddress, str, str],
            tuple[Refusal, dict[str, None]],
        ] = {}
        self._places: set[tuple[pci_address.PciAddress, str]] = set()

    @property
    def found(self) -> tuple[Refusal, ...]:
        """A refusal for each cause."""
        return tuple(
            dataclasses.replace(first, addresses=tuple(addresses))
            for first, addresses in self._found.values()
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """A text for each cause."""
        return tuple(each.text for each in self.found)

    def add(
        self,
        address: pci_address.PciAddress,
        spec: device_spec.DeviceSpec,
        why: object,
    ) -> None:
        """Refuse a function, or a part of it."""
        text = str(why)
        function = self._host.functions.get(address)
        key = (
            address if function is None else function.card,
            spec.text,
            text.replace(str(address), ''),
        )
        first = Refusal(
            (), spec.text, text, isinstance(why, exceptions.NotMadeYet)
        )
        self._found.setdefault(key, (first, {}))[1][str(address)] = None
        self._places.add((address, spec.text))

    def has(
        self, address: pci_address.PciAddress, spec: device_spec.DeviceSpec
    ) -> bool:
        """Whether a function was refused to a line."""
        return (address, spec.text) in self._places
