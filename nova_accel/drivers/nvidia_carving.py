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

"""Carve NVIDIA's cards for guests, and clear them again.

The driver of NVIDIA chooses the GPU instance of a vGPU among the free ones of
its profile. So there must be no other free one when a vGPU is made. One that
no vGPU has was left by a carving that was interrupted: it is destroyed. A lock
keeps others off the card meanwhile.
"""

from collections.abc import Iterator
import contextlib
import re
import time

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.host import gpu_processes
from nova_accel.host import mig
from nova_accel.host import sysfs_tree
from nova_accel.host import vfio_vgpu
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice

_INSTANCE = 'nvidia/gpu_instance_id'

_MOST_NAMED = 8

# How long virtual functions may take to be there again.
_WITHIN_S = 30


class Carver:
    """Carves the cards of one host.

    Each step is found done if it is repeated. :meth:`plug` goes on with an
    interrupted one, and :meth:`unplug` undoes it.
    """

    def __init__(self, sysfs: sysfs_tree.Sysfs) -> None:
        self._sysfs = sysfs
        self._vgpus = vfio_vgpu.VfioVgpu(sysfs)

    def plug(
        self, handle: attach_handle.AttachHandle, cut: card_slice.CardSlice
    ) -> None:
        """Make the unit of a handle, and give it to the handle's function.

        :raises DeviceError: the card is used otherwise, or refuses.
        """
        with self._locked(handle) as card:
            if cut.mode == card_slice.MIG:
                self._turn(card, True, handle.address)
                self._plug_instance(card, handle.address, cut)
            elif handle.vgpu_type is None:
                raise exceptions.DeviceError(f'{handle.uuid} has no vGPU type')
            else:
                self._turn(card, False, handle.address)
                self._vgpus.set_type(handle.address, handle.vgpu_type)

    def unplug(
        self, handle: attach_handle.AttachHandle, cut: card_slice.CardSlice
    ) -> None:
        """Take the unit from the handle's function, and remove it.

        :raises DeviceError: the card refuses.
        """
        # All that was made of a card goes with its virtual functions.
        if self._sysfs.link(handle.address, 'physfn') is None:
            return
        with self._locked(handle) as card:
            if cut.mode != card_slice.MIG:
                if self._vgpus.current(handle.address) == handle.vgpu_type:
                    self._clear(handle.address)
            # A reboot takes the instances away, and the mode of some cards.
            elif card.is_on():
                profile, start = _place(card, cut)
                mine = self._used(card).get(handle.address)
                if mine is not None and mine.is_at(profile, start):
                    self._clear(handle.address)
                self._destroy(card, profile, start)

    def _plug_instance(
        self,
        card: mig.MigCard,
        function: pci_address.PciAddress,
        cut: card_slice.CardSlice,
    ) -> None:
        profile, start = _place(card, cut)
        used = self._used(card)
        for user, instance in used.items():
            if user == function and instance.is_at(profile, start):
                return
            if user == function or instance.overlaps(profile, start):
                raise exceptions.DeviceError(
                    f'{user} has a vGPU in GPU instance {instance.number} of '
                    f'{card.address}, at {instance.start}, where {function} '
                    f'was to get {cut.shape} at {start}'
                )
        for each in card.instances():
            if each not in used.values() and (
                each.overlaps(profile, start) or each.profile == profile.number
            ):
                card.destroy(each)
        try:
            mine = card.create(profile, start)
            self._vgpus.set_type(function, self._type(function, profile))
            given = self._instance(function)
            if given != mine.number:
                raise exceptions.DeviceError(
                    f'the vGPU of {function} is in GPU instance {given} of '
                    f'{card.address}, not in {mine.number}'
                )
        except exceptions.DeviceError:
            with contextlib.suppress(exceptions.DeviceError):
                self._vgpus.set_type(function, vfio_vgpu.NO_TYPE)
                self._destroy(card, profile, start)
            raise

    def _destroy(
        self, card: mig.MigCard, profile: mig.Profile, start: int
    ) -> None:
        """Destroy the instance at a place, unless a function has it."""
        used = self._used(card).values()
        for each in card.instances():
            if each.is_at(profile, start) and each not in used:
                card.destroy(each)

    def _clear(self, function: pci_address.PciAddress) -> None:
        # The next guest's vGPU is another one: they go, whoever set them.
        self._vgpus.set_parameters(function, '')
        self._vgpus.set_type(function, vfio_vgpu.NO_TYPE)

    def _turn(
        self,
        card: mig.MigCard,
        is_on: bool,
        function: pci_address.PciAddress,
    ) -> None:
        """Have an empty card in MIG mode, or out of it.

        :param function: it has to be there afterwards
        :raises DeviceError: it is used, and the text says by what.
        """
        if card.is_on() == is_on:
            return
        for user in self._with_vgpu(card):
            raise exceptions.DeviceError(
                f'MIG mode of {card.address} is {"off" if is_on else "on"}, '
                f'and {user} has a vGPU'
            )
        for each in () if is_on else card.instances():
            card.destroy(each)
        try:
            card.turn(is_on)
        except exceptions.DeviceError as error:
            uses: list[str] = []
            with contextlib.suppress(exceptions.DeviceError, OSError):
                processes = gpu_processes.GpuProcesses(self._sysfs)
                uses += processes.uses(card.address)
            raise exceptions.DeviceError(
                f'{error}; '
                + (
                    reason.some(uses, _MOST_NAMED)
                    or 'no process of the host is seen to have it open'
                )
            ) from error
        # They may have been made anew.
        deadline = time.monotonic() + _WITHIN_S
        while self._vgpus.current(function) is None:
            if time.monotonic() > deadline:
                raise exceptions.DeviceError(
                    f'{function} is no more since the MIG mode of '
                    f'{card.address} was changed: make it again with '
                    'sriov-manage -e'
                )
            time.sleep(0.2)

    def _type(
        self, function: pci_address.PciAddress, profile: mig.Profile
    ) -> str:
        """The id of the vGPU type that takes all of an instance.

        :raises DeviceError: the function can be given no such type.
        """
        end = '-{}-{}C'.format(*re.findall('[0-9]+', profile.name))
        types = self._vgpus.types(function)
        for name, number in types.items():
            if name.endswith(end):
                return number
        raise exceptions.DeviceError(
            f'{vfio_vgpu.CREATABLE} of {function} has no type whose name ends '
            f'in {end}, but {reason.some(list(types), _MOST_NAMED) or "none"}'
        )

    def _used(
        self, card: mig.MigCard
    ) -> dict[pci_address.PciAddress, mig.Instance]:
        """Function with a vGPU -> the GPU instance of it.

        :raises DeviceError: one is in no instance that the card lists.
        """
        there = {each.number: each for each in card.instances()}
        found = {}
        for function in self._with_vgpu(card):
            number = self._instance(function)
            if number not in there:
                raise exceptions.DeviceError(
                    f'{function} has a vGPU in GPU instance {number}, which '
                    f'{card.address} does not list'
                )
            found[function] = there[number]
        return found

    def _with_vgpu(
        self, card: mig.MigCard
    ) -> Iterator[pci_address.PciAddress]:
        """The virtual functions of a card that have a vGPU."""
        for name in self._sysfs.names(card.address):
            if name.startswith('virtfn'):
                function = pci_address.PciAddress.parse(
                    self._sysfs.link(card.address, name) or ''
                )
                current = self._vgpus.current(function)
                if current not in (None, vfio_vgpu.NO_TYPE):
                    yield function

    def _instance(self, function: pci_address.PciAddress) -> int:
        """The number of the GPU instance of a function's vGPU."""
        text = self._sysfs.read(function, _INSTANCE) or ''
        if not re.fullmatch('[0-9]{1,5}', text):
            raise exceptions.DeviceError(
                f'{_INSTANCE} of {function} is {text[:20]!r}, and no number'
            )
        return int(text)

    @contextlib.contextmanager
    def _locked(
        self, handle: attach_handle.AttachHandle
    ) -> Iterator[mig.MigCard]:
        """The card of a handle, which no one else carves in the body."""
        address = self._sysfs.link(handle.address, 'physfn')
        if address is None:
            raise exceptions.DeviceError(f'{handle.address} has no card')
        card = mig.MigCard(pci_address.PciAddress.parse(address))
        with card.locked():
            yield card


def _place(
    card: mig.MigCard, cut: card_slice.CardSlice
) -> tuple[mig.Profile, int]:
    """The profile of a slice, and its start, in slices of memory.

    :raises DeviceError: the card has no such place.
    """
    profiles = card.profiles() or ()
    slices = mig.slices(profiles)
    for each in profiles:
        for start in each.starts:
            if cut == each.cut(start, slices):
                return each, start
    raise exceptions.DeviceError(
        f'{card.address} has no place for {cut.shape} at '
        f'{cut.start * slices / card_slice.WHOLE_CARD:g} of {slices} slices, '
        'unlike what was known of it while its MIG mode was off'
    )
