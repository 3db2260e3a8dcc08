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

"""Questions about what instances hold, answered from the journal."""

from nova_accel.model import arq_types
from nova_accel.model import host_binding
from nova_accel.virt.holding import attach_journal

_Step = attach_journal.AttachStep


class Holdings:
    """Answers from the journal of one host, and changes nothing."""

    def __init__(self, journal: attach_journal.AttachJournal) -> None:
        self._journal = journal

    def has(
        self, instance_uuid: str, role: arq_types.Role = arq_types.Role.ACTIVE
    ) -> bool:
        """Whether the binding is complete.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, role)
        return entry is not None and entry.step is _Step.HELD

    def arqs_of(
        self, instance_uuid: str, role: arq_types.Role = arq_types.Role.ACTIVE
    ) -> tuple[arq_types.Arq, ...]:
        """The ARQs that the guest is to have, none of an incomplete binding.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, role)
        if entry is None or entry.step is not _Step.HELD:
            return ()
        return entry.kept

    def left_by(self, instance_uuid: str) -> tuple[arq_types.Arq, ...]:
        """The ARQs that the guest may have, and is not to have any more.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, arq_types.Role.ACTIVE)
        return () if entry is None else entry.left

    def bindings(self) -> list[host_binding.Binding]:
        """All complete bindings."""
        return [
            host_binding.Binding(
                entry.instance_uuid,
                entry.role,
                entry.attempt,
                tuple(arq.uuid for arq in entry.arqs),
                entry.arqs,
            )
            for entry in self._journal.entries()
            if entry.step is _Step.HELD
        ]

    def journaled(self) -> set[tuple[str, arq_types.Role]]:
        """Instance and role of every binding that the journal knows of."""
        return self._journal.keys()

    def damaged(self) -> frozenset[str]:
        """The instances that have a damaged entry.

        No other answer has these entries. :meth:`has` and :meth:`arqs_of`
        raise an error for them.
        """
        return frozenset(
            uuid for uuid, _why in self._journal.damaged() if uuid is not None
        )

    def arqs(self, role: arq_types.Role | None = None) -> list[arq_types.Arq]:
        """All ARQs that instances hold, or that are not given back yet.

        :param role: only those in this role, if it is given
        """
        return [
            arq
            for entry in self._journal.entries()
            if role in (None, entry.role)
            for arq in entry.arqs
        ]

    def handles(self) -> frozenset[str]:
        """The uuids of the attach handles that guests may have."""
        return frozenset(
            arq.handle.uuid
            for entry in self._journal.entries()
            if entry.step is not _Step.RELEASING
            for arq in entry.arqs
        )

    def holders(self) -> dict[str, str]:
        """Attach handle uuid -> the instance that has it, or just had it."""
        return {
            arq.handle.uuid: entry.instance_uuid
            for entry in self._journal.entries()
            for arq in entry.arqs
        }

    def by_others(self, wanted: attach_journal.AttachEntry) -> dict[str, str]:
        """Attach handle uuid -> the instance that has it in another binding.

        :param wanted: whose attach handles are looked for
        """
        uuids = {arq.handle.uuid for arq in wanted.arqs}
        return {
            arq.handle.uuid: entry.instance_uuid
            for entry in self._journal.entries()
            if (entry.instance_uuid, entry.role)
            != (wanted.instance_uuid, wanted.role)
            for arq in entry.arqs
            if arq.handle.uuid in uuids
        }

    def releasing(self) -> frozenset[str]:
        """The uuids of the attach handles that are being given back."""
        return frozenset(
            arq.handle.uuid
            for entry in self._journal.entries()
            if entry.step is _Step.RELEASING
            for arq in entry.arqs
        )
