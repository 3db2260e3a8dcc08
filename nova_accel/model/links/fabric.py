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

"""The rules of an NVSwitch fabric: which partition is active for which guest.

On a board with NVSwitches a guest's GPUs are joined only while the partition
that has exactly these GPUs is active. Two active partitions never have a GPU
in common. Fabric Manager programs the switches, and knows nothing of guests.
After its restart it waits until it is told which partitions are active. The
host's journal therefore says which partition it has activated for which guest.

See NVIDIA's Fabric Manager User Guide, "Shared NVSwitch Virtualization Model",
"vGPU Virtualization Model" and "Resiliency".
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
import enum
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import decoding
from nova_accel.model import pci_address

#: A number of Fabric Manager's, of a partition or of a GPU's place.
NUMBER = decoding.integer(0, 2**32 - 1)


class Partition(NamedTuple):
    """GPUs that the switches can join, by Fabric Manager's number.

    ``module_ids`` are the GPUs' places on the board. ``order`` has the same
    ones in the order in which Fabric Manager names them. A partition that is
    not supported cannot be activated, for example because a link is down.
    """

    number: int
    module_ids: frozenset[int]
    is_active: bool
    is_supported: bool = True
    order: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f'partition {self.number} ({modules(self.module_ids)})'


class PartitionStep(enum.StrEnum):
    """How far the host has got with a partition."""

    ACTIVATING = 'activating'
    ACTIVE = 'active'
    DEACTIVATING = 'deactivating'


@dataclasses.dataclass(frozen=True)
class PartitionEntry:
    """A partition that the host activates for a guest, in its journal.

    ``handles`` are the uuids of the guest's attach handles on these GPUs.
    ``functions`` are the virtual functions that the partition is activated
    with, in its order. They are empty for whole GPUs. ``boot_id`` names the
    boot of the host in which the step was begun.
    """

    number: int
    module_ids: frozenset[int]
    instance_uuid: str
    step: PartitionStep
    boot_id: str
    handles: frozenset[str] = frozenset()
    functions: tuple[pci_address.PciAddress, ...] = ()

    def is_of(self, partition: Partition) -> bool:
        """Whether it is about this partition of the same board."""
        return (self.number, self.module_ids) == (
            partition.number,
            partition.module_ids,
        )

    def is_same(self, other: 'PartitionEntry') -> bool:
        """Whether both are one guest's partition, with the same functions."""
        return (
            self.instance_uuid == other.instance_uuid
            and self.number == other.number
            and self.module_ids == other.module_ids
            and self.functions == other.functions
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            'number': self.number,
            'module_ids': sorted(self.module_ids),
            'instance_uuid': self.instance_uuid,
            'step': str(self.step),
            'boot_id': self.boot_id,
            'handles': sorted(self.handles),
            'functions': [str(function) for function in self.functions],
        }

    @classmethod
    def from_dict(cls, value: Any) -> 'PartitionEntry':
        """The reverse of :meth:`to_dict`.

        :raises Malformed: the value is no entry.
        """
        field = decoding.Fields(value)
        entry = cls(
            field('number', NUMBER),
            frozenset(field('module_ids', decoding.listed(NUMBER))),
            field('instance_uuid', decoding.uuid),
            field('step', decoding.one_of(PartitionStep)),
            field('boot_id', decoding.name),
            frozenset(field('handles', decoding.listed(decoding.uuid))),
            field('functions', decoding.listed(pci_address.from_text)),
        )
        if not entry.module_ids:
            raise decoding.Malformed('module_ids', 'has no GPUs')
        return entry


class Repairs(NamedTuple):
    """The steps that make the fabric as the guests need it.

    ``activate`` are the partitions that running guests have lost.
    ``deactivate`` are those whose guests are gone, ``forget`` the entries of
    partitions that are inactive and not needed. ``foreign`` are active, and
    the host has not activated them.
    """

    activate: tuple[PartitionEntry, ...]
    deactivate: tuple[PartitionEntry, ...]
    forget: tuple[PartitionEntry, ...]
    foreign: tuple[Partition, ...]


def modules(module_ids: Iterable[int]) -> str:
    """GPUs as a message names them."""
    listed = sorted(module_ids)
    return (
        f'module {listed[0]}'
        if len(listed) == 1
        else f'modules {", ".join(map(str, listed))}'
    )


def exact(partitions: Iterable[Partition], module_ids: Set[int]) -> Partition:
    """The supported partition that has these GPUs and no others.

    :raises DeviceError: there is none.
    """
    same = [each for each in partitions if each.module_ids == module_ids]
    for each in same:
        if each.is_supported:
            return each
    raise exceptions.DeviceError(
        f'{same[0]} of the NVSwitch fabric is not usable: a link of one of '
        'its GPUs is down, or Fabric Manager does not support it'
        if same
        else f'{modules(module_ids)} are no partition of the NVSwitch fabric'
    )


def conflicts(
    partition: Partition, partitions: Iterable[Partition]
) -> tuple[Partition, ...]:
    """The other active partitions that have one of its GPUs."""
    return tuple(
        each
        for each in partitions
        if each.is_active
        and each.number != partition.number
        and each.module_ids & partition.module_ids
    )


def in_order(
    partition: Partition,
    functions: Mapping[int, pci_address.PciAddress],
) -> tuple[pci_address.PciAddress, ...]:
    """One virtual function for each GPU, in the partition's order.

    :param functions: GPU -> its virtual function; none for whole GPUs
    :raises DeviceError: some of the GPUs have a virtual function, and others
        do not.
    """
    if not functions:
        return ()
    if functions.keys() != partition.module_ids:
        raise exceptions.DeviceError(
            f'{partition} of the NVSwitch fabric needs a virtual function of '
            f'each GPU, or of none; only {modules(functions)} have one'
        )
    return tuple(functions[number] for number in partition.order)


def partitions_to_restore(
    entries: Iterable[PartitionEntry],
    needed: Collection[int],
    damaged: Set[int] = frozenset(),
) -> tuple[int, ...]:
    """The partitions to name to a Fabric Manager that was restarted.

    A partition that was being activated or deactivated has no guest. It is
    left out, so Fabric Manager ends what was begun.

    :param needed: the numbers of the partitions whose guests run
    :param damaged: the numbers of those whose entries are damaged: a guest may
        have them
    """
    return tuple(
        sorted(
            {
                entry.number
                for entry in entries
                if entry.step is PartitionStep.ACTIVE or entry.number in needed
            }
            | damaged
        )
    )


def repairs(
    partitions: Collection[Partition],
    entries: Collection[PartitionEntry],
    needed: Collection[int],
) -> Repairs:
    """Compare what is active with what the guests need.

    :param needed: the numbers of the partitions whose guests run, are about
        to start, or will arrive
    """
    found: dict[str, list[PartitionEntry]] = {
        'activate': [],
        'deactivate': [],
        'forget': [],
    }
    for entry in entries:
        is_active = any(
            entry.is_of(each) for each in partitions if each.is_active
        )
        if entry.number in needed:
            if not is_active:
                found['activate'].append(entry)
        else:
            found['deactivate' if is_active else 'forget'].append(entry)
    known = {(entry.number, entry.module_ids) for entry in entries}
    return Repairs(
        tuple(found['activate']),
        tuple(found['deactivate']),
        tuple(found['forget']),
        tuple(
            each
            for each in partitions
            if each.is_active and (each.number, each.module_ids) not in known
        ),
    )
