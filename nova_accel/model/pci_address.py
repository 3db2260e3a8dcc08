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

"""PCI addresses: ``<domain>:<bus>:<slot>.<function>``, all hexadecimal.

The widths are those of the Linux kernel's sysfs names: domain four to eight
digits, bus two, slot two (0-1f), function one (0-7).
"""

import dataclasses
import re
from typing import Any

from nova_accel import exceptions
from nova_accel.model import decoding

_SYSFS = re.compile(
    r'(?P<domain>[0-9a-f]{4,8}):(?P<bus>[0-9a-f]{2}):'
    r'(?P<slot>[01][0-9a-f])\.(?P<function>[0-7])',
    re.IGNORECASE,
)

_NODE_DEVICE = re.compile(
    r'pci_(?P<domain>[0-9a-f]{4,8})_(?P<bus>[0-9a-f]{2})_'
    r'(?P<slot>[01][0-9a-f])_(?P<function>[0-7])',
    re.IGNORECASE,
)


@dataclasses.dataclass(frozen=True, order=True)
class PciAddress:
    """The address of one PCI function."""

    domain: int
    bus: int
    slot: int
    function: int

    @classmethod
    def parse(cls, text: str) -> 'PciAddress':
        """Read ``0000:81:00.0``, as sysfs and operators write it.

        :raises InvalidName: the text is no PCI address.
        """
        return cls._match(_SYSFS, text)

    @classmethod
    def parse_node_device(cls, name: str) -> 'PciAddress':
        """Read ``pci_0000_81_00_0``, as libvirt names node devices.

        :raises InvalidName: the text is no name of a PCI node device.
        """
        return cls._match(_NODE_DEVICE, name)

    @classmethod
    def _match(cls, pattern: re.Pattern[str], text: str) -> 'PciAddress':
        match = pattern.fullmatch(text)
        if match is None:
            raise exceptions.InvalidName(f'{text!r} is not a PCI address')
        return cls(
            **{
                part: int(digits, 16)
                for part, digits in match.groupdict().items()
            }
        )

    @property
    def parts(self) -> dict[str, str]:
        """The address in the API's four parts, without ``0x``."""
        return {
            'domain': f'{self.domain:04x}',
            'bus': f'{self.bus:02x}',
            'device': f'{self.slot:02x}',
            'function': f'{self.function}',
        }

    @property
    def node_device(self) -> str:
        """libvirt's name of this function's node device."""
        return 'pci_{domain}_{bus}_{device}_{function}'.format(**self.parts)

    def __str__(self) -> str:
        return '{domain}:{bus}:{device}.{function}'.format(**self.parts)


def from_text(value: Any) -> PciAddress:
    """The reverse of ``str()``, of any value.

    :raises ValueError, InvalidName: it is no PCI address.
    """
    return PciAddress.parse(decoding.text(value))
