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

"""The journal of what instances hold on this host, kept across restarts.

It has one small JSON file for each (instance, role). An intent is written
before the act: ``acquiring`` before the API is asked, ``releasing`` before a
device is touched. So after a crash nova-compute knows what it had begun, and
guests get their devices again even while the API is away.
"""

from collections.abc import Iterable
import dataclasses
import enum
import pathlib
from typing import Any

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attempt_number
from nova_accel.model import decoding
from nova_accel.model import host_binding
from nova_accel.state import durable_file
from nova_accel.state import record_files


class AttachStep(enum.StrEnum):
    """How far the host has got with a binding."""

    ACQUIRING = 'acquiring'
    HELD = 'held'
    RELEASING = 'releasing'


@dataclasses.dataclass(frozen=True)
class AttachEntry:
    """A binding of an instance, as far as this host knows.

    ``moved_from`` is the role in which the API may still have the ARQs.
    ``leaving`` are the uuids of ARQs that the instance gives back as soon as
    its guest has let go. None if it is not being changed; else the API may
    have further ARQs of it. With ``is_renamed`` Nova's flavor of the instance
    may name another device profile than that of the ARQs that stay.
    """

    instance_uuid: str
    role: arq_types.Role
    attempt: int
    step: AttachStep
    arqs: tuple[arq_types.Arq, ...] = ()
    moved_from: arq_types.Role | None = None
    leaving: tuple[str, ...] | None = None
    is_renamed: bool = False

    @property
    def kept(self) -> tuple[arq_types.Arq, ...]:
        """The ARQs that the guest is to have."""
        leaving = self.leaving or ()
        return tuple(arq for arq in self.arqs if arq.uuid not in leaving)

    @property
    def left(self) -> tuple[arq_types.Arq, ...]:
        """The ARQs that the instance gives back."""
        leaving = self.leaving or ()
        return tuple(arq for arq in self.arqs if arq.uuid in leaving)

    def to_dict(self) -> dict[str, Any]:
        return {
            'instance_uuid': self.instance_uuid,
            'role': str(self.role),
            'attempt': self.attempt,
            'step': str(self.step),
            'arqs': [arq.to_dict() for arq in self.arqs],
            'moved_from': self.moved_from and str(self.moved_from),
            'leaving': None if self.leaving is None else list(self.leaving),
            'is_renamed': self.is_renamed,
        }

    @classmethod
    def from_dict(cls, value: Any) -> 'AttachEntry':
        """The reverse of :meth:`to_dict`.

        :raises Malformed: the value is no entry, or none that this host can
            have written.
        """
        field = decoding.Fields(value)
        role = decoding.one_of(arq_types.Role)
        entry = cls(
            field('instance_uuid', decoding.uuid),
            field('role', role),
            field('attempt', attempt_number.from_json),
            field('step', decoding.one_of(AttachStep)),
            field('arqs', decoding.listed(arq_types.Arq.from_dict)),
            field('moved_from', decoding.optional(role)),
            field(
                'leaving', decoding.optional(decoding.listed(decoding.uuid))
            ),
            field('is_renamed', decoding.boolean),
        )
        entry.check()
        return entry

    def check(self) -> None:
        """:raises Malformed: its fields do not belong together."""
        if self.step is AttachStep.HELD and not self.arqs:
            raise decoding.Malformed('arqs', 'is empty, and the step is held')
        if self.step is AttachStep.ACQUIRING and self.arqs:
            raise decoding.Malformed(
                'arqs', 'is not empty, and the step is acquiring'
            )
        if set(self.leaving or ()) - {arq.uuid for arq in self.arqs}:
            raise decoding.Malformed('leaving', 'names none of arqs')
        if self.moved_from is self.role:
            raise decoding.Malformed('moved_from', f'is the role {self.role}')
        parts = [part for arq in self.arqs for part in arq.handle.parts]
        if len({arq.uuid for arq in self.arqs}) < len(self.arqs) or len(
            set(parts)
        ) < len(parts):
            raise decoding.Malformed('arqs', 'has a device twice')


def of_binding(binding: host_binding.Binding) -> AttachEntry:
    """The entry of a binding that only the API knows.

    :raises Conflict: the binding is not adopted, so no host holds it.
    """
    if binding.role is None or binding.attempt is None:
        raise exceptions.Conflict(
            f'what instance {binding.instance_uuid} has is not adopted'
        )
    return AttachEntry(
        binding.instance_uuid,
        binding.role,
        binding.attempt,
        AttachStep.HELD,
        binding.arqs,
    )


def disputed(
    entries: Iterable[AttachEntry],
) -> dict[tuple[str, arq_types.Role], str]:
    """The entries that claim a device which another one claims, too.

    No one can tell from the journal which of them is wrong. Two entries of one
    instance may have the same ARQs, if a move between its roles is not
    finished: the newest entry says so.

    :returns: instance and role -> why
    """
    claims: dict[str, list[AttachEntry]] = {}
    for entry in entries:
        for arq in entry.arqs:
            for name in {arq.handle.uuid, *arq.handle.parts}:
                claims.setdefault(name, []).append(entry)
    found = {}
    for name, claiming in claims.items():
        newest = max(claiming, key=lambda entry: entry.attempt)
        is_move = newest.moved_from is not None and all(
            entry is newest or entry.attempt < newest.attempt
            for entry in claiming
        )
        for entry in claiming:
            others = [
                other
                for other in claiming
                if other is not entry
                and not (
                    is_move and other.instance_uuid == entry.instance_uuid
                )
            ]
            for other in others:
                found[entry.instance_uuid, entry.role] = (
                    f'it claims {name}, and so does the entry of instance '
                    f'{other.instance_uuid} ({other.role})'
                )
    return found


class AttachJournal:
    """The entries of one host, below ``directory``.

    The accelerator API knows what a damaged entry had, see :mod:`.attempts`.
    Until then the operations of its instance fail.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self._files = record_files.RecordFiles(
            directory,
            AttachEntry.from_dict,
            lambda entry: _name(entry.instance_uuid, entry.role),
            'accelerators',
            'the host asks the accelerator API for what the instance has, and '
            f'keeps the file as *{durable_file.DAMAGED}',
        )
        for key, why in disputed(self.entries()).items():
            self._files.refuse(_name(*key), why)

    def read(
        self, instance_uuid: str, role: arq_types.Role
    ) -> AttachEntry | None:
        """The entry of a binding, or None if there is none.

        :raises DeviceError: the entry is damaged.
        """
        return self._files.read(_name(instance_uuid, role))

    def write(self, entry: AttachEntry) -> None:
        """Store the entry, so that it survives a crash of the host.

        :raises DeviceError: the disk refused.
        """
        self._files.write(entry)

    def remove(self, entry: AttachEntry) -> None:
        """Forget the entry.

        :raises DeviceError: the disk refused.
        """
        self._files.remove(_name(entry.instance_uuid, entry.role))

    def next_attempt(self, instance_uuid: str) -> int:
        """The number of the next attempt of an instance.

        It is greater than those of all its roles, so that a later attempt
        always has the greater number.
        """
        return 1 + max(
            (
                entry.attempt
                for entry in self.entries()
                if entry.instance_uuid == instance_uuid
            ),
            default=0,
        )

    def entries(self) -> list[AttachEntry]:
        """Every entry that is not damaged."""
        return self._files.entries()

    def damaged(self) -> list[tuple[str | None, str]]:
        """Tell what is wrong with each damaged entry.

        :returns: the instance, if the name of the file says it, and the words
        """
        return [
            (None if (key := _key(name)) is None else key[0], why)
            for name, why in sorted(self._files.damaged.items())
        ]

    def damaged_of(self, instance_uuid: str) -> dict[arq_types.Role, str]:
        """The faults of the damaged entries of an instance, by role."""
        return {
            key[1]: why
            for name, why in sorted(self._files.damaged.items())
            if (key := _key(name)) is not None and key[0] == instance_uuid
        }

    def put_aside(self, instance_uuid: str, role: arq_types.Role) -> None:
        """Forget a damaged entry that has nothing to tell.

        :raises DeviceError: the disk refused.
        """
        self._files.remove(_name(instance_uuid, role))

    def keys(self) -> set[tuple[str, arq_types.Role]]:
        """Instance and role of every entry that is not damaged.

        They include the roles that entries have moved from.
        """
        keys = set()
        for entry in self.entries():
            keys.add((entry.instance_uuid, entry.role))
            if entry.moved_from is not None:
                keys.add((entry.instance_uuid, entry.moved_from))
        return keys


def _name(instance_uuid: str, role: arq_types.Role) -> str:
    return f'{instance_uuid}.{role}'


def _key(name: str) -> tuple[str, arq_types.Role] | None:
    """Instance and role by a file's name; None if it is another file."""
    instance_uuid, _, role = name.partition('.')
    try:
        return decoding.uuid(instance_uuid), arq_types.Role(role)
    except ValueError:
        return None
