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

"""Attach handles: the one thing on a host that a guest gets for one ARQ."""

from collections.abc import Mapping
import dataclasses
import enum
from typing import Any

from nova_accel.model import pci_address


class HandleType(enum.StrEnum):
    """The wire's ``attach_handle_type``."""

    PCI = 'PCI'
    MDEV = 'MDEV'


@dataclasses.dataclass(frozen=True)
class AttachHandle:
    """A PCI function, or a mediated device that its parent makes on demand.

    ``uuid`` names the handle; a mediated device has it as its own uuid.
    ``address`` is the PCI function, or the mediated device's parent.
    ``mdev_type`` is the parent's mdev type id, None for a PCI function.
    ``physical_network`` is the one that the function is plugged into, which
    Nova wants to know of a function that it gives to a port.
    """

    uuid: str
    address: pci_address.PciAddress
    mdev_type: str | None = None
    physical_network: str | None = None

    @property
    def type(self) -> HandleType:
        return HandleType.PCI if self.mdev_type is None else HandleType.MDEV

    @property
    def info(self) -> dict[str, str]:
        """The wire's ``attach_handle_info``."""
        info = self.address.parts
        if self.mdev_type is not None:
            info['asked_type'] = self.mdev_type
        if self.physical_network is not None:
            info['physical_network'] = self.physical_network
        return info

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the journal and between the planes."""
        return {'uuid': self.uuid, 'type': str(self.type), 'info': self.info}


def from_dict(value: Mapping[str, Any]) -> AttachHandle:
    """The reverse of :meth:`AttachHandle.to_dict`.

    :raises InvalidName: the address in ``info`` is malformed.
    """
    info = value['info']
    return AttachHandle(
        uuid=value['uuid'],
        address=pci_address.PciAddress.parse(
            '{domain}:{bus}:{device}.{function}'.format(**info)),
        mdev_type=info.get('asked_type'),
        physical_network=info.get('physical_network'))
