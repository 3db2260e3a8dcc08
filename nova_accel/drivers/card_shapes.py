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

"""Cards of many shapes, as their drivers describe them.

A card offers a unit for each shape at each start that it can ever make,
whatever it is at the moment. The slices tell which of them exclude each other.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import re

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.drivers import facts
from nova_accel.drivers import pci_kind
from nova_accel.host import attachable
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware

# A vGPU on a GPU instance has the instance's compute slices in its name, such
# as "NVIDIA A100-3-20C" (https://docs.nvidia.com/vgpu).
_ON_INSTANCE = re.compile('.*-[0-9]+-[0-9]+[A-Z]+')

_MOST_NAMED = 8


def is_on_instance(vgpu_name: str) -> bool:
    """Whether vGPUs of a type have a GPU instance each."""
    return _ON_INSTANCE.fullmatch(vgpu_name) is not None


def chosen(
    shapes: Iterable[str], kind: str, known: Iterable[str]
) -> list[str]:
    """The names that a line has of one kind of shapes.

    :param shapes: those of the line
    :param kind: the word before the colon
    :param known: the names that the card knows
    :raises DeviceError: it does not know one, or has none at all.
    """
    parts = [shape.partition(':') for shape in shapes]
    wanted = [name for found, _colon, name in parts if found == kind]
    there = sorted(known) if wanted else []
    if device_spec_keys.ALL in wanted:
        wanted = there or wanted
    missing = [name for name in wanted if name not in there]
    if missing:
        raise exceptions.DeviceError(
            f'it has no shape {kind}:{missing[0]}, but '
            + (reason.some(there, _MOST_NAMED) or 'none of that kind')
        )
    return wanted


def vgpu_slices(name: str, most: int) -> list[card_slice.CardSlice]:
    """The slices of vGPUs of a type, of which a card makes so many alone."""
    shape = f'{card_slice.VGPU}:{name}'
    size = card_slice.WHOLE_CARD // most
    return [
        card_slice.CardSlice(shape, shape, number * size, size)
        for number in range(most)
    ]


def is_whole(handle: attach_handle.AttachHandle) -> bool:
    """Whether it is a card of many shapes as a whole."""
    return handle.slice is not None and handle.slice.mode == card_slice.WHOLE


def is_undivided(
    card: pci_function.PciFunction, spec: device_spec.DeviceSpec
) -> bool:
    """Whether a card shows nothing that it could be but whole.

    It is a guest's, or about to be, or its virtual functions are to be made.
    While a guest has it, the core keeps what its driver has seen before.
    """
    return card_slice.WHOLE in spec.shapes and not (
        card.virtual_functions or card.mdev_types
    )


def device(
    known: facts.Facts,
    parts: Iterable[attach_handle.AttachHandle],
    node_uuid: str,
    host: libvirt_devices.HostDevices,
) -> hardware.Device:
    """A card with a deployable for each of its shapes.

    :param parts: all units that the card can make, with their slices
    :raises DeviceError: it cannot be handed out as a whole, as its line says.
    """
    shapes: dict[str, list[attach_handle.AttachHandle]] = {}
    if card_slice.WHOLE in known.spec.shapes:
        shapes[card_slice.WHOLE] = [
            _whole(known.function, node_uuid, host.functions)
        ]
    for handle in parts:
        if handle.slice is not None:
            shapes.setdefault(handle.slice.shape, []).append(handle)
    return known.device(
        dataclasses.replace(
            known.deployable(shape, units),
            resource_class=naming.shape_class(shape),
        )
        for shape, units in shapes.items()
    )


def _whole(
    card: pci_function.PciFunction,
    node_uuid: str,
    functions: Mapping[pci_address.PciAddress, pci_function.PciFunction],
) -> attach_handle.AttachHandle:
    """The unit that is a card, with the audio function that it may have.

    :raises DeviceError: no program is known that empties it.
    """
    pci_kind.check_vendor(card, {'10de': 'NVIDIA'})
    pci_kind.check_card(card)
    address, *others = attachable.unit(
        card, device_spec_keys.UnitKind.SLOT, functions
    )
    return attach_handle.AttachHandle(
        naming.derived_uuid(node_uuid, card.name, card_slice.WHOLE),
        address,
        further_functions=tuple(others),
        slice=card_slice.CardSlice(
            *(card_slice.WHOLE, card_slice.WHOLE, 0, card_slice.WHOLE_CARD)
        ),
    )
