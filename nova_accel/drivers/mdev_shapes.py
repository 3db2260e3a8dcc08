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

"""The units of cards of many shapes that are mediated devices."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

from nova_accel import exceptions
from nova_accel.drivers import card_shapes
from nova_accel.drivers import mdev_types
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model.cards import card_slice


def handles(
    shapes: Iterable[str],
    parents: Sequence[pci_function.PciFunction],
    about: mdev_types.MdevTypes,
    node_uuid: str,
) -> list[attach_handle.AttachHandle]:
    """All units that a card can make while it has no others.

    It makes vGPUs of one type at a time.

    :param shapes: as a line has them
    :param parents: the functions of the card that make mediated devices
    :param about: its types
    :raises DeviceError: it makes none of the shapes.
    """
    types = {
        name: (mdev_type, most)
        for mdev_type in about.ids
        if (most := about.most(mdev_type))
        and (name := about.name(mdev_type))
        and not card_shapes.is_on_instance(name)
    }
    return [
        dataclasses.replace(handle, slice=each)
        for name in _chosen(shapes, types)
        for each, handle in zip(
            card_shapes.vgpu_slices(name, types[name][1]),
            _units(parents, *types[name], node_uuid),
            # A card with fewer virtual functions makes fewer.
            strict=False,
        )
    ]


def check_others(
    parents: Iterable[pci_function.PciFunction],
    units: Iterable[attach_handle.AttachHandle],
    host: libvirt_devices.HostDevices,
) -> None:
    """Check that a card has no mediated devices but its units.

    :raises DeviceError: it has another one.
    """
    addresses = {parent.address for parent in parents}
    ours = {handle.uuid for handle in units}
    for mdev in (*host.mdevs, *host.held_mdevs):
        if mdev.parent in addresses and mdev.uuid not in ours:
            raise exceptions.DeviceError(
                f'the mediated device {mdev.uuid} ({mdev.type}) is none of '
                'its shapes, and how much room it leaves is unknown: delete '
                'or migrate its server, or remove it'
            )


def _units(
    parents: Sequence[pci_function.PciFunction],
    mdev_type: str,
    most: int,
    node_uuid: str,
) -> Iterator[attach_handle.AttachHandle]:
    """All units of a type; a virtual function makes one."""
    places = (
        [(parents[0], number) for number in range(most)]
        if parents[0].parent_address is None
        else [(parent, 0) for parent in parents[:most]]
    )
    for parent, number in places:
        yield attach_handle.AttachHandle(
            mdev_types.unit_uuid(node_uuid, parent, mdev_type, number),
            parent.address,
            mdev_type,
        )


def _chosen(shapes: Iterable[str], known: Collection[str]) -> list[str]:
    """The names of the vGPU types of a line.

    :raises DeviceError: the line has a shape that the card does not make.
    """
    for shape in shapes:
        if shape.startswith(f'{card_slice.MIG}:'):
            raise exceptions.DeviceError(
                f'its "shapes" have "{shape}", which its mediated devices '
                'cannot be: remove it'
            )
    return card_shapes.chosen(shapes, card_slice.VGPU, known)
