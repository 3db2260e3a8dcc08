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


"""Cards that make mediated devices on demand, mostly vGPUs."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import fractions
import itertools
import sys
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import card_shapes
from nova_accel.drivers import facts
from nova_accel.drivers import mdev_shapes
from nova_accel.drivers import mdev_types
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.host import whole_card
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware

# More units than any card makes: how far our existing ones are searched for.
_MOST_UNITS = 256

_NO_ROOM = 'the other mediated devices of the card leave no room for it'


class _Wanted(NamedTuple):
    """A type, and how many units of it the line wants at most.

    ``handles`` are those that ``parents`` have made or can make now.
    """

    mdev_type: str
    units: int
    handles: list[attach_handle.AttachHandle]
    parents: list[pci_function.PciFunction]


class MdevDriver(base.Driver):
    """A card that makes mediated devices when they are plugged.

    Where the virtual functions are the parents, as on SR-IOV cards of NVIDIA
    (https://docs.nvidia.com/vgpu), the card is still one device. The devices
    are transient: the host forgets them when it reboots, and each start of
    the guest makes them again.

    Several types share a card. If the card makes N units of one type alone,
    each takes 1/N of the card. Others' mediated devices are subtracted first,
    then come the line's types in their order, as long as there is room.
    Virtual functions make one unit each, and are assigned to the types in the
    same order.

    With ``shapes`` in its line, the card offers all units that it could make.
    These exclude each other, see :mod:`nova_accel.model.cards.card_slice`.

    Held devices always come first, whatever their uuids are: a server that was
    taken over from another service has uuids of that service.
    """

    line_keys = frozenset(
        {'live_migratable', 'mdev_type', 'mdev_types', 'shapes'}
    )
    cleaning_methods = frozenset({'none'})

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        _check_is_no_part(function, spec, host)
        if spec.shapes:
            return self._shaped(function, spec, host)
        parents = _parents(function, host)
        about = mdev_types.MdevTypes(self._sysfs, parents)
        types = _types(about.ids, spec)
        known = facts.virtual(facts.of(function, spec))
        deployables = []
        for mdev_type, handles, fault in self._units(parents, types, host):
            deployable = known.deployable(
                mdev_type,
                handles,
                *naming.vgpu_traits(
                    known.vendor,
                    function.product_id,
                    mdev_type,
                    about.name(mdev_type),
                ),
            )
            deployables.append(dataclasses.replace(deployable, fault=fault))
        if all(each.fault for each in deployables):
            raise exceptions.DeviceError(
                f'it can make no more {", ".join(dict(types))}: others have '
                'made all that it can make'
            )
        if spec.mdev_types:
            facts.tell_missing(function, spec.mdev_types, deployables)
        result = known.device(deployables)
        # Cards that make other types are not interchangeable with this one.
        return dataclasses.replace(
            result,
            operator_traits=result.operator_traits.union(
                naming.vgpu_trait(known.vendor, function.product_id, mdev_type)
                for mdev_type, _units in types
            ),
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        if card_shapes.is_whole(handle):
            whole_card.give(self._sysfs, handle.address)
            return
        if handle.mdev_type is None:
            raise exceptions.DeviceError(
                f'{handle.address} is no parent of mediated devices'
            )
        self._node_devices.create_mdev(
            handle.uuid, handle.address, handle.mdev_type
        )

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """Nova checks its versions, and the vendor's driver its own."""
        if handle.mdev_type is None:
            super().check_migratable(handle)

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        if card_shapes.is_whole(handle):
            whole_card.take_back(self._sysfs, handle.address)
            return
        self._node_devices.destroy_mdev(handle.uuid)

    def _shaped(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        """The card with all units that it can make while it has no others."""
        parts: list[attach_handle.AttachHandle] = []
        if not card_shapes.is_undivided(function, spec):
            parents = _parents(function, host)
            about = mdev_types.MdevTypes(self._sysfs, parents)
            parts = mdev_shapes.handles(
                spec.shapes, parents, about, self._node_uuid
            )
            mdev_shapes.check_others(parents, parts, host)
        known = facts.virtual(facts.of(function, spec))
        return card_shapes.device(known, parts, self._node_uuid, host)

    def _units(
        self,
        parents: Sequence[pci_function.PciFunction],
        types: Sequence[tuple[str, int]],
        host: libvirt_devices.HostDevices,
    ) -> Iterator[
        tuple[str, tuple[attach_handle.AttachHandle, ...], str | None]
    ]:
        """Each type, its units that fit beside the others, and a fault.

        A type without room has a fault, and the units of which it would make
        some. So Placement keeps it while another one has the card.

        :raises DeviceError: the card does not say how much of it its types
            take.
        """
        most = self._most(parents, types)
        mine = self._possible(parents, types, host)
        made = {mdev.uuid for mdev in host.mdevs}
        ours = {handle.uuid for each in mine for handle in each.handles}
        share = 1 - self._taken(parents, ours, host)
        held = {mdev.uuid for mdev in host.held_mdevs}
        for mdev_type, wanted, handles, some in mine:
            maximum, units = most[mdev_type], wanted
            if maximum is not None:
                units = min(units, max(0, int(share * maximum)))
            units = max(units, sum(handle.uuid in held for handle in handles))
            # Existing units stay, even if others could be made instead.
            chosen = {
                handle.uuid
                for handle in sorted(
                    handles,
                    key=lambda handle: (
                        handle.uuid not in held,
                        handle.uuid not in made,
                    ),
                )[:units]
            }
            if maximum is not None:
                share -= fractions.Fraction(len(chosen), maximum)
            found = [each for each in handles if each.uuid in chosen]
            if found:
                yield mdev_type, tuple(found), None
            else:
                later = self._nobodys(some, mdev_type)
                most_units = min(wanted, maximum or 0)
                yield (
                    mdev_type,
                    tuple(itertools.islice(later, most_units)),
                    _NO_ROOM,
                )

    def _most(
        self,
        parents: Sequence[pci_function.PciFunction],
        types: Sequence[tuple[str, int]],
    ) -> dict[str, int | None]:
        """How many units the card makes of each type alone, None if unknown.

        :raises DeviceError: there are several types, and one is unknown.
        """
        about = mdev_types.MdevTypes(self._sysfs, parents)
        most = {
            mdev_type: about.most(mdev_type) for mdev_type, _units in types
        }
        silent = [
            f'mdev_supported_types/{mdev_type}/description'
            for mdev_type, maximum in most.items()
            if maximum is None
        ]
        if len(types) > 1 and silent:
            raise exceptions.DeviceError(
                f'{", ".join(silent)} of its functions have no max_instance: '
                'how its types share the card is not known, so it can have '
                'one type only'
            )
        return most

    def _possible(
        self,
        parents: Sequence[pci_function.PciFunction],
        types: Sequence[tuple[str, int]],
        host: libvirt_devices.HostDevices,
    ) -> list['_Wanted']:
        return [
            _Wanted(
                mdev_type,
                units,
                [
                    handle
                    for parent in some
                    for handle in self._handles(parent, mdev_type, host)
                ],
                some,
            )
            for (mdev_type, units), some in zip(
                types, _divided(parents, types, host), strict=True
            )
        ]

    def _taken(
        self,
        parents: Sequence[pci_function.PciFunction],
        ours: set[str],
        host: libvirt_devices.HostDevices,
    ) -> fractions.Fraction:
        """The share of the card that others' mediated devices take."""
        about = mdev_types.MdevTypes(self._sysfs, parents)
        addresses = {parent.address for parent in parents}
        taken = fractions.Fraction(0)
        for mdev in host.mdevs:
            if mdev.parent in addresses and mdev.uuid not in ours:
                maximum = about.most(mdev.type)
                if maximum is not None:
                    taken += fractions.Fraction(1, maximum)
        return taken

    def _handles(
        self,
        parent: pci_function.PciFunction,
        mdev_type: str,
        host: libvirt_devices.HostDevices,
    ) -> Iterator[attach_handle.AttachHandle]:
        """A handle for each unit that is ours already or can still be made.

        The card's number of available units excludes those that others have
        made.
        """
        made, held = (
            {
                mdev.uuid
                for mdev in mdevs
                if (mdev.parent, mdev.type) == (parent.address, mdev_type)
            }
            for mdevs in (host.mdevs, host.held_mdevs)
        )
        available = parent.mdev_types.get(mdev_type, 0)
        derived = [
            self._uuid(parent, mdev_type, index)
            for index in range(
                max(_MOST_UNITS, available) if made or held else available
            )
        ]
        # In an order that does not depend on what is held.
        uuids = [*sorted(held.difference(derived)), *derived]
        offered = made.union(
            sorted(
                (uuid for uuid in uuids if uuid not in made),
                key=lambda uuid: uuid not in held,
            )[:available]
        )
        for uuid in uuids:
            if uuid in offered:
                yield attach_handle.AttachHandle(
                    uuid, parent.address, mdev_type
                )

    def _nobodys(
        self, parents: Sequence[pci_function.PciFunction], mdev_type: str
    ) -> Iterator[attach_handle.AttachHandle]:
        """Handles of a type that can be made later; each function's first."""
        for index in range(_MOST_UNITS):
            for parent in parents:
                yield attach_handle.AttachHandle(
                    self._uuid(parent, mdev_type, index),
                    parent.address,
                    mdev_type,
                )

    def _uuid(
        self, parent: pci_function.PciFunction, mdev_type: str, index: int
    ) -> str:
        return mdev_types.unit_uuid(self._node_uuid, parent, mdev_type, index)


def _parents(
    function: pci_function.PciFunction,
    host: libvirt_devices.HostDevices,
) -> Sequence[pci_function.PciFunction]:
    """The functions of the card that make mediated devices.

    :raises DeviceError: no function makes any.
    """
    if function.mdev_types:
        return [function]
    parts = host.parts(function)
    parents = [part for part in parts if part.mdev_types]
    if not parents:
        raise exceptions.DeviceError(
            'it makes no mediated devices: is the vendor\'s driver loaded '
            'on the host?'
        )
    for part in parts:
        if not part.mdev_types:
            sysfs_tree.note(
                part.address,
                f'it makes no mediated devices, as others of {part.card} do: '
                'is it bound to the vendor\'s driver?',
            )
    return parents


def _divided(
    parents: Sequence[pci_function.PciFunction],
    types: Sequence[tuple[str, int]],
    host: libvirt_devices.HostDevices,
) -> list[list[pci_function.PciFunction]]:
    """The parents that make each of the types.

    Several virtual functions and several types are divided. A function of
    which an instance holds a unit stays with the type of the unit.
    """
    if len(types) == 1 or len(parents) == 1:
        return [list(parents)] * len(types)
    kept = {mdev.parent: mdev.type for mdev in host.held_mdevs}
    left = iter([each for each in parents if each.address not in kept])
    found = []
    for mdev_type, units in types:
        own = [each for each in parents if kept.get(each.address) == mdev_type]
        found.append(
            own + list(itertools.islice(left, max(0, units - len(own))))
        )
    return found


def _types(
    made: Sequence[str], spec: device_spec.DeviceSpec
) -> Sequence[tuple[str, int]]:
    """The types that the card is to make, and how many of each at most.

    :raises DeviceError: the choice is ambiguous, or the card does not make the
        type.
    """
    if spec.mdev_type is not None and spec.mdev_types:
        raise exceptions.DeviceError(
            'the line has both "mdev_type" and "mdev_types"'
        )
    wanted = spec.mdev_types or tuple(
        (mdev_type, sys.maxsize)
        for mdev_type in ([spec.mdev_type] if spec.mdev_type else made)
    )
    if (len(wanted) == 1 or spec.mdev_types) and all(
        mdev_type in made for mdev_type, _units in wanted
    ):
        return wanted
    raise exceptions.DeviceError(
        f'the line must have an "mdev_type" that it makes: {", ".join(made)}'
    )


def _check_is_no_part(
    function: pci_function.PciFunction,
    spec: device_spec.DeviceSpec,
    host: libvirt_devices.HostDevices,
) -> None:
    """:raises DeviceError: the line also matches its card."""
    if function.parent_address is None:
        return
    card = host.functions.get(function.card)
    if host.is_unreadable(function.card) or (
        card is not None and spec.matches(card)
    ):
        raise exceptions.PartOfCard(
            f'it is a part of {function.card}, which the line matches too',
            function.card,
        )
