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

import dataclasses
import enum
import functools
import re
from typing import Any

from nova_accel import exceptions
from nova_accel.model import bounds
from nova_accel.model import decoding
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice

_IDENTITY = re.compile(
    '(?P<ids>[0-9a-f]{4}:[0-9a-f]{4})'
    '(?: class (?P<class_code>[0-9a-f]{4}))?'
    '(?: serial number (?P<serial>.+))?',
    re.DOTALL,
)


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
    ``physical_network`` is the network that the function is plugged into; Nova
    needs it for a function that it gives to a port. ``further_functions`` go
    into the guest together with the function. ``vgpu_type`` is the vGPU type
    of a function that stays bound to its vendor's VFIO driver
    (``current_vgpu_type`` of NVIDIA's). ``is_managed`` says that libvirt takes
    the function from its host driver and gives it back. ``identity`` tells the
    device from another that is put in its place, see :func:`identity_of`.
    ``slice`` is the part of the card that it takes, None if it shares no
    card with units of other shapes.
    ``cleaning`` is how its driver cleans it after a guest: the value of the
    key ``clean``, and the command.
    ``live_migratable`` and ``vgpu_params`` are the values of the keys of these
    names. Only the device's host knows and needs these three.
    """

    uuid: str
    address: pci_address.PciAddress
    mdev_type: str | None = None
    physical_network: str | None = None
    further_functions: tuple[pci_address.PciAddress, ...] = ()
    vgpu_type: str | None = None
    is_managed: bool = True
    identity: str | None = None
    slice: card_slice.CardSlice | None = None
    cleaning: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    live_migratable: bool | None = dataclasses.field(
        default=None, compare=False
    )
    vgpu_params: str | None = dataclasses.field(default=None, compare=False)

    @property
    def type(self) -> HandleType:
        return HandleType.PCI if self.mdev_type is None else HandleType.MDEV

    @property
    def functions(self) -> tuple[pci_address.PciAddress, ...]:
        """The PCI functions that the guest gets.

        Empty for a mediated device.
        """
        if self.type is HandleType.MDEV:
            return ()
        return (self.address, *self.further_functions)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of it in a guest, by their names in libvirt's XML.

        These are the addresses of the functions, or the uuid of the mediated
        device.
        """
        return tuple(map(str, self.functions)) or (self.uuid,)

    @property
    def serial_number(self) -> str | None:
        """The serial number in its identity, None if it does not say."""
        return _facts(self.identity or '').get('serial')

    @property
    def info(self) -> dict[str, Any]:
        """The wire's ``attach_handle_info``."""
        info: dict[str, Any] = self.address.parts
        optional = {
            'asked_type': self.mdev_type or self.vgpu_type,
            'physical_network': self.physical_network,
            'further_functions': [
                str(address) for address in self.further_functions
            ],
            'managed': None if self.is_managed else 'no',
            'slice': self.slice and self.slice.to_dict(),
        }
        info.update((key, value) for key, value in optional.items() if value)
        return info

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the journal and between the planes."""
        value = {'uuid': self.uuid, 'type': str(self.type), 'info': self.info}
        return (
            value
            if self.identity is None
            else {**value, 'identity': self.identity}
        )

    def check_same(self, present: 'AttachHandle') -> None:
        """Check that the device is still the same one.

        :param present: the handle as its host sees it now
        :raises DeviceError: names both, and the cure; another device is in
            its place, it has become another one, or it is at another place.
        """
        if self.address != present.address:
            raise exceptions.DeviceError(
                f'{self.uuid} is at {present.address} now, not at '
                f'{self.address}'
            )
        if is_another(self.identity, present.identity):
            serial = self.serial_number
            raise exceptions.DeviceError(
                f'at {self.address} is {present.identity} now, not '
                f'{self.identity}: '
                + (
                    'its firmware or its mode was changed, by its guest or on '
                    'the host. Change it back, or delete the server'
                    if serial and serial == present.serial_number
                    else 'another device was put in its place, or its '
                    'firmware was changed. Put it back as it was, or delete '
                    'the server'
                )
            )


def identity_of(ids: str, class_code: str | None, serial: str | None) -> str:
    """The identity of a device, for people to read and for :func:`is_another`.

    :param ids: vendor and product: ``10de:2331``
    :param class_code: its PCI class, six hexadecimal digits
    :param serial: its serial number, None while it does not say, such as a
        drive that a guest has
    """
    return (
        ids
        + (f' class {class_code[:4]}' if class_code else '')
        + (f' serial number {serial}' if serial else '')
    )


def is_another(one: str | None, other: str | None) -> bool:
    """Whether two identities are of two devices, as far as they are known."""
    first, second = _facts(one or ''), _facts(other or '')
    return any(first[name] != second[name] for name in first.keys() & second)


def _facts(identity: str) -> dict[str, str]:
    """The reverse of :func:`identity_of`; a driver has the serial number."""
    match = _IDENTITY.fullmatch(identity)
    found = match.groupdict() if match else {'serial': identity}
    return {name: text for name, text in found.items() if text}


def from_dict(value: Any) -> AttachHandle:
    """The reverse of :meth:`AttachHandle.to_dict`.

    :raises Malformed: the value is no attach handle.
    """
    field = decoding.Fields(value)
    return field(
        'info',
        functools.partial(
            _of_info,
            field('uuid', decoding.uuid),
            field('type', decoding.one_of(HandleType)),
            field('identity', decoding.optional(decoding.text), None),
        ),
    )


def _of_info(
    uuid: str, kind: HandleType, identity: str | None, value: Any
) -> AttachHandle:
    """The reverse of :attr:`AttachHandle.info`."""
    field = decoding.Fields(value)
    domain, bus, device, function = (
        field(part, decoding.name)
        for part in ('domain', 'bus', 'device', 'function')
    )
    asked_type = field('asked_type', decoding.optional(decoding.name), None)
    is_mdev = kind is HandleType.MDEV
    if is_mdev and asked_type is None:
        raise decoding.Malformed('asked_type', 'is missing')
    return AttachHandle(
        uuid=uuid,
        address=pci_address.PciAddress.parse(
            f'{domain}:{bus}:{device}.{function}'
        ),
        mdev_type=asked_type if is_mdev else None,
        physical_network=field(
            'physical_network', decoding.optional(decoding.name), None
        ),
        further_functions=field(
            'further_functions',
            decoding.listed(
                pci_address.from_text, bounds.MAX_FURTHER_FUNCTIONS
            ),
            (),
        ),
        vgpu_type=None if is_mdev else asked_type,
        is_managed=field('managed', decoding.optional(decoding.text), None)
        != 'no',
        identity=identity,
        slice=field('slice', decoding.optional(card_slice.from_dict), None),
    )
