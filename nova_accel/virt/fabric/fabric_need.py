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

"""Which GPUs guests get, and which guests need a partition at a moment."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Set
from typing import NamedTuple

from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.links import fabric
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import holdings

_Role = arq_types.Role


class Gpus(NamedTuple):
    """The GPUs of one guest that the fabric joins.

    ``handles`` are the uuids of their attach handles, ``functions`` the
    virtual functions of those that are shared out as vGPUs.
    """

    module_ids: frozenset[int]
    handles: frozenset[str]
    functions: Mapping[int, pci_address.PciAddress]

    def entry(
        self,
        partition: fabric.Partition,
        instance_uuid: str,
        step: fabric.PartitionStep,
        boot_id: str,
    ) -> fabric.PartitionEntry:
        """The journal's entry of the partition that has exactly these GPUs.

        :raises DeviceError: some of the GPUs have a virtual function, and
            others do not.
        """
        return fabric.PartitionEntry(
            partition.number,
            partition.module_ids,
            instance_uuid,
            step,
            boot_id,
            self.handles,
            fabric.in_order(partition, self.functions),
        )


class Need:
    """Answers for one host.

    :param held: what instances hold
    """

    def __init__(
        self,
        current: host_view.CurrentState,
        held: holdings.Holdings,
        guests: all_guests.AllGuests,
    ) -> None:
        self._current = current
        self._held = held
        self._guests = guests

    def gpus(self, arqs: Iterable[arq_types.Arq]) -> Gpus:
        """The devices of ARQs that need a partition.

        A card that is shared by several guests needs none: NVLink belongs to
        one function at a time, and MIG has none.
        """
        handles: set[str] = set()
        module_ids: set[int] = set()
        functions: dict[int, pci_address.PciAddress] = {}
        devices = self._devices()
        for arq in arqs:
            device = devices.get(arq.handle.uuid)
            if device is None or device.module_id is None:
                continue
            if sum(1 for _handle in device.handles) > 1:
                continue
            handles.add(arq.handle.uuid)
            module_ids.add(device.module_id)
            if arq.handle.address != device.address:
                functions[device.module_id] = arq.handle.address
        return Gpus(frozenset(module_ids), frozenset(handles), functions)

    def owners(self, module_ids: Set[int]) -> dict[str, Gpus]:
        """The instances whose guests get one of these GPUs, and their GPUs."""
        found = {
            binding.instance_uuid: self.gpus(binding.arqs)
            for binding in self._held.bindings()
            if binding.role in (_Role.ACTIVE, _Role.INCOMING)
        }
        return {
            uuid: gpus
            for uuid, gpus in found.items()
            if gpus.module_ids & module_ids
        }

    def is_unsure(self, module_ids: Set[int]) -> bool:
        """Whether a guest may have one of these GPUs that no one holds.

        :raises DeviceError: libvirt does not say.
        """
        in_guests = frozenset().union(*self._guests.devices().values())
        return bool(self._held.damaged()) or any(
            part in in_guests
            for device in self._current.view.devices
            if device.module_id in module_ids
            for handle in device.handles
            for part in (*handle.parts, str(device.address))
        )

    def has(self, entry: fabric.PartitionEntry, is_busy: bool) -> bool:
        """Whether a guest has the partition, or is about to get it.

        :param is_busy: Nova works on the guest, which may not run meanwhile
        :raises DeviceError: libvirt or the journal does not say.
        """
        if entry.handles & self._handles(entry, _Role.INCOMING):
            return True
        return bool(entry.handles & self._handles(entry, _Role.ACTIVE)) and (
            is_busy or entry.instance_uuid in self._guests.running()
        )

    def _handles(
        self, entry: fabric.PartitionEntry, role: arq_types.Role
    ) -> frozenset[str]:
        return frozenset(
            arq.handle.uuid
            for arq in self._held.arqs_of(entry.instance_uuid, role)
        )

    def _devices(self) -> Mapping[str, hardware.Device]:
        return {
            handle.uuid: device
            for device in self._current.view.devices
            for handle in device.handles
        }
