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

from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
import re

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.drivers import facts
from nova_accel.model import attach_handle
from nova_accel.model import card_slice
from nova_accel.model import naming
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


def device(
    known: facts.Facts, handles: Collection[attach_handle.AttachHandle]
) -> hardware.Device:
    """A card with a part for each of its shapes.

    :param handles: of all units that the card can make, with their slices
    """
    shapes: dict[str, list[attach_handle.AttachHandle]] = {}
    for handle in handles:
        if handle.slice is not None:
            shapes.setdefault(handle.slice.shape, []).append(handle)
    return known.device(
        dataclasses.replace(
            known.deployable(shape, units),
            resource_class=naming.shape_class(shape),
        )
        for shape, units in shapes.items()
    )
