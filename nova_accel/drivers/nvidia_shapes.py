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

"""The units of NVIDIA's cards that are carved for each guest.

A unit gets a virtual function by its number among the starts of its mode. So
units that a card can have at a time have different functions.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import functools
import time
from typing import NamedTuple
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.drivers import card_shapes
from nova_accel.drivers import mig_places
from nova_accel.host import mig
from nova_accel.host import nvidia_smi
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice

# How long it takes until a card is asked again, which keeps guests from
# starting meanwhile.
_LOOK_AGAIN_S = 3600

_T = TypeVar('_T')


class _Unit(NamedTuple):
    """A slice of a card, and its vGPU type if that is known before."""

    cut: card_slice.CardSlice
    vgpu_type: str | None = None


class ToldFacts:
    """Remembers the answers of cards since nova-compute was started.

    It does not change while their driver is loaded. So what was told once is
    good for as long as a card does not answer.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[object, ...], tuple[float, object]] = {}

    def ask(self, call: Callable[[], _T], *key: object) -> _T:
        """Call it, unless it has returned something not long ago."""
        at, told = self._told.get(key, (None, None))
        if at is None or time.monotonic() - at > _LOOK_AGAIN_S:
            try:
                told = call()
            except exceptions.DeviceError:
                if at is None:
                    raise
            self._told[key] = time.monotonic(), told
        return told  # type: ignore[return-value]


def handles(
    card: pci_function.PciFunction,
    shapes: Iterable[str],
    node_uuid: str,
    told: ToldFacts,
) -> list[attach_handle.AttachHandle]:
    """The units that are parts of a card, of all shapes.

    :param shapes: as a line has them
    :raises DeviceError: the card cannot have one, or does not tell it.
    """
    units = [*_instances(card, shapes, told), *_vgpus(card, shapes, told)]
    functions = _functions(card, units)
    return [
        attach_handle.AttachHandle(
            naming.derived_uuid(
                node_uuid, card.name, cut.shape, str(cut.start)
            ),
            functions[cut.mode, cut.start],
            vgpu_type=vgpu_type,
            is_managed=False,
            slice=cut,
        )
        for cut, vgpu_type in units
    ]


def _functions(
    card: pci_function.PciFunction, units: Iterable[_Unit]
) -> dict[tuple[str, int], pci_address.PciAddress]:
    """Mode and start -> the virtual function for it.

    :raises DeviceError: the card has too few.
    """
    starts: dict[str, set[int]] = {}
    for cut, _vgpu_type in units:
        starts.setdefault(cut.mode, set()).add(cut.start)
    needed = max(map(len, starts.values()), default=0)
    there = sorted(card.virtual_functions)
    if needed > len(there):
        raise exceptions.DeviceError(
            f'its "shapes" need {needed} virtual functions, and it has '
            f'{len(there)}: have the host make more, or name only shapes of '
            'which a card makes fewer'
        )
    return {
        (mode, start): function
        for mode, several in starts.items()
        for start, function in zip(sorted(several), there, strict=False)
    }


def _instances(
    card: pci_function.PciFunction, shapes: Iterable[str], told: ToldFacts
) -> Iterator[_Unit]:
    """The units on GPU instances."""
    if not any(shape.startswith(f'{card_slice.MIG}:') for shape in shapes):
        return
    profiles = told.ask(
        mig.MigCard(card.address).profiles, 'mig', card.address
    )
    if profiles is None:
        profiles = mig_places.of(card.product_id)
    if not profiles:
        raise exceptions.DeviceError(
            f'the MIG profiles of {card.vendor_id}:{card.product_id} are not '
            'known, and a card tells them only in MIG mode: turn it on '
            f'(nvidia-smi -i {card.address} -mig 1), or remove "mig:" from '
            'its "shapes"'
        )
    known = {each.name: each for each in profiles}
    slices = mig.slices(profiles)
    for name in card_shapes.chosen(shapes, card_slice.MIG, known):
        for start in known[name].starts:
            yield _Unit(known[name].cut(start, slices))


def _vgpus(
    card: pci_function.PciFunction, shapes: Iterable[str], told: ToldFacts
) -> Iterator[_Unit]:
    """The units that share the card in time, all of one size."""
    if not any(shape.startswith(f'{card_slice.VGPU}:') for shape in shapes):
        return
    known = {
        each.name: each
        for each in told.ask(
            functools.partial(nvidia_smi.vgpu_types, card.address),
            *('vgpu', card.address),
        )
        if not card_shapes.is_on_instance(each.name)
    }
    for name in card_shapes.chosen(shapes, card_slice.VGPU, known):
        for cut in card_shapes.vgpu_slices(name, known[name].most):
            yield _Unit(cut, known[name].number)
