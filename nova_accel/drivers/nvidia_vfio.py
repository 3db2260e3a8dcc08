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

"""NVIDIA's vGPUs that are virtual functions with a vGPU type."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import card_shapes
from nova_accel.drivers import facts
from nova_accel.drivers import nvidia_carving
from nova_accel.drivers import nvidia_shapes
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import nvidia_smi
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.host import vfio_vgpu
from nova_accel.host import whole_card
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware


class _Part(NamedTuple):
    """A virtual function, and the ids of its type and of those that fit."""

    function: pci_function.PciFunction
    current: str
    fitting: frozenset[str]


class NvidiaVfioDriver(base.Driver):
    """A card, its virtual functions, and the vGPU type that each is to get.

    With Linux 6.8 and vGPU software 17, a virtual function gets a type by a
    write to sysfs. It then goes into a guest bound to NVIDIA's own driver
    (https://docs.nvidia.com/vgpu, "Creating an NVIDIA vGPU on a Linux with KVM
    Hypervisor that Uses a Vendor-Specific VFIO Framework"). MIG-backed types
    are like any others; the operator creates their GPU instances.

    Only the card knows what still fits on it, and each function reports that
    for itself. If the card has room for one more unit, all functions offer it.
    So the operator says how many units of each type are wanted, and the first
    functions get the first type.

    With ``shapes`` in its line, a card is carved for each guest instead
    (:mod:`nova_accel.drivers.nvidia_carving`).
    """

    kind = 'VGPU'
    line_keys = frozenset(
        {'live_migratable', 'shapes', 'vgpu_params', 'vgpu_types'}
    )
    cleaning_methods = frozenset({'none'})

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._told = nvidia_shapes.ToldFacts()

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        pci_kind.check_vendor(function, {'10de': 'NVIDIA'})
        pci_kind.check_card(function)
        if spec.shapes:
            return card_shapes.device(
                facts.virtual(facts.of(function, spec, 'VGPU')),
                ()
                if card_shapes.is_undivided(function, spec)
                else nvidia_shapes.handles(
                    function, spec.shapes, self._node_uuid, self._told
                ),
                self._node_uuid,
                host,
            )
        if not spec.vgpu_types:
            raise exceptions.DeviceError(
                'the line must have "vgpu_types", such as {"558": 4}, or '
                '"shapes"'
            )
        parts, why = self._parts(function, host)
        wanted = sum(units for _type, units in spec.vgpu_types)
        if not parts or wanted > len(function.virtual_functions):
            raise exceptions.DeviceError(
                f'the line has {wanted} vGPUs, but {len(parts)} of its '
                f'{len(function.virtual_functions)} virtual functions can '
                'be given a type' + (f': {why}' if why else '')
            )
        known = facts.virtual(facts.of(function, spec, 'VGPU'))
        deployables = [
            self._deployable(known, type_id, mine)
            for (type_id, _units), mine in zip(
                spec.vgpu_types,
                _divided(spec.vgpu_types, parts),
                strict=True,
            )
        ]
        if all(each.fault for each in deployables):
            raise exceptions.DeviceError(
                'its virtual functions can be given none of the line\'s '
                f'"vgpu_types", by their {vfio_vgpu.CREATABLE}'
            )
        facts.tell_missing(function, spec.vgpu_types, deployables)
        result = known.device(deployables)
        # Cards of other types are not interchangeable with this one.
        return dataclasses.replace(
            result,
            operator_traits=result.operator_traits.union(
                *(each.traits for each in deployables)
            ),
        )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        if card_shapes.is_whole(handle):
            whole_card.give(self._sysfs, handle.address)
            return
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        if handle.slice is not None:
            carver = nvidia_carving.Carver(self._sysfs)
            carver.plug(handle, handle.slice)
        elif handle.vgpu_type is None:
            raise exceptions.DeviceError(f'{handle.address} is no vGPU')
        else:
            vgpus.set_type(handle.address, handle.vgpu_type)
        if handle.vgpu_params is not None:
            vgpus.set_parameters(handle.address, handle.vgpu_params)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """NVIDIA's driver saves the state of a vGPU."""
        if handle.vgpu_type is None:
            super().check_migratable(handle)

    def migration_facts(
        self, handles: Sequence[attach_handle.AttachHandle]
    ) -> tuple[Mapping[str, str], ...]:
        """The facts that NVIDIA demands to be equal.

        See "Migrating a VM Configured with NVIDIA vGPU" at
        https://docs.nvidia.com/vgpu. The plugin of a vGPU is started with
        ``vgpu_params``: those of the line, if the handle has them, else those
        in sysfs.
        """
        cards = [self._card(handle.address) for handle in handles]
        branches = {card: self._branch(card) for card in cards}
        modes = nvidia_smi.ecc_modes(branches)
        return tuple(
            self._facts(handle, card, branches[card], modes[card])
            for handle, card in zip(handles, cards, strict=True)
        )

    def _card(self, address: pci_address.PciAddress) -> pci_address.PciAddress:
        card = self._sysfs.link(address, 'physfn')
        if card is None:
            raise exceptions.DeviceError(f'{address} has no card')
        return pci_address.PciAddress.parse(card)

    def _branch(self, card: pci_address.PciAddress) -> str:
        version = self._sysfs.read(card, 'driver/module/version')
        if not version:
            raise exceptions.DeviceError(
                f'driver/module/version of {card} is empty or absent: is '
                "NVIDIA's driver loaded?"
            )
        return version.partition('.')[0]

    def _facts(
        self,
        handle: attach_handle.AttachHandle,
        card: pci_address.PciAddress,
        branch: str,
        ecc_mode: str,
    ) -> Mapping[str, str]:
        return {
            'the product of the GPU': (
                self._sysfs.read(card, 'device') or 'unknown'
            ),
            'the vGPU type': handle.vgpu_type or vfio_vgpu.NO_TYPE,
            'the branch of the driver': branch,
            'the ECC mode': ecc_mode,
            'vgpu_params': (
                vfio_vgpu.VfioVgpu(self._sysfs).parameters(handle.address)
                if handle.vgpu_params is None
                else handle.vgpu_params
            ),
        }

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        if card_shapes.is_whole(handle):
            whole_card.take_back(self._sysfs, handle.address)
            return
        if handle.slice is not None:
            carver = nvidia_carving.Carver(self._sysfs)
            carver.unplug(handle, handle.slice)
            return
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        # A function with another type now is not the one that was plugged.
        if (
            handle.vgpu_type is not None
            and vgpus.current(handle.address) == handle.vgpu_type
        ):
            # The next guest's vGPU is another one: they go, whoever set them.
            vgpus.set_parameters(handle.address, '')
            vgpus.set_type(handle.address, vfio_vgpu.NO_TYPE)

    def _parts(
        self,
        card: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> tuple[list[_Part], str | None]:
        """The virtual functions that can get types, and why others cannot."""
        vgpus = vfio_vgpu.VfioVgpu(self._sysfs)
        found = []
        troubles = {}
        for function in host.parts(card):
            address = function.address
            try:
                current = vgpus.current(address)
                if current is None:
                    raise exceptions.DeviceError(
                        f'{vfio_vgpu.CURRENT} of {address} is missing'
                    )
                fitting = (
                    vgpus.types(address).values()
                    if current == vfio_vgpu.NO_TYPE
                    else [current]
                )
                found.append(_Part(function, current, frozenset(fitting)))
            except exceptions.DeviceError as error:
                troubles[address] = str(error)
        if any(part.fitting for part in found if _is_free(part)):
            for part in list(found):
                if _is_free(part) and not part.fitting:
                    found.remove(part)
                    troubles[part.function.address] = (
                        f'{vfio_vgpu.CREATABLE} has no types, unlike that of '
                        'other functions'
                    )
        # Without any the card is refused, which tells the first of them.
        for address, trouble in troubles.items() if found else ():
            sysfs_tree.note(address, trouble)
        return found, next(iter(troubles.values()), None)

    def _deployable(
        self,
        known: facts.Facts,
        type_id: str,
        mine: Sequence[_Part],
    ) -> hardware.Deployable:
        """The units of a type; it is faulty if no one can get any of them.

        So Placement keeps the type while vGPUs of another one have the card.
        A card makes types of one size at a time, unless it is in mixed mode.
        """
        card = known.function
        fitting = [part for part in mine if type_id in part.fitting]
        name = f'nvidia-{type_id}'
        result = known.deployable(
            name,
            [
                attach_handle.AttachHandle(
                    naming.derived_uuid(
                        self._node_uuid, part.function.name, name
                    ),
                    part.function.address,
                    vgpu_type=type_id,
                    is_managed=False,
                )
                for part in fitting or mine
            ],
            naming.vgpu_trait(known.vendor, card.product_id, name),
        )
        return (
            result
            if fitting
            else dataclasses.replace(
                result, fault='other vGPUs of the card leave no room for it'
            )
        )


def _is_free(part: _Part) -> bool:
    return part.current == vfio_vgpu.NO_TYPE


def _divided(
    types: Sequence[tuple[str, int]], parts: Iterable[_Part]
) -> list[list[_Part]]:
    """The functions for each type: those that have it, then free ones.

    They are the first functions of the card; one with a type that the line
    does not have is somebody else's.
    """
    known = {vfio_vgpu.NO_TYPE, *(type_id for type_id, _units in types)}
    pool = list(
        itertools.islice(
            (part for part in parts if part.current in known),
            sum(units for _type, units in types),
        )
    )
    free = iter([part for part in pool if _is_free(part)])
    found = []
    for type_id, units in types:
        own = [part for part in pool if part.current == type_id][:units]
        mine = own + list(itertools.islice(free, units - len(own)))
        found.append(sorted(mine, key=lambda part: part.function.address))
    return found
