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

"""Changes of the role that a binding's ARQs have on this host.

No other instance can take the ARQs meanwhile. So the journal decides, and the
API gets a report at once, or when it is back. All code here runs under the
instance's lock.
"""

import dataclasses

from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import retries

_Step = attach_journal.AttachStep


class RoleChanges:
    """The moves of one host's bindings.

    :param devices: unplugs the devices of a binding that is replaced
    """

    def __init__(
        self,
        journal: attach_journal.AttachJournal,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
    ) -> None:
        self._journal = journal
        self._api = api
        self._devices = devices

    def move(
        self,
        instance_uuid: str,
        source: arq_types.Role,
        target: arq_types.Role,
    ) -> None:
        """Journal the move, if the source holds anything, and report it.

        :raises DeviceError: a device of the target is stuck, or the journal
            is damaged; nothing has moved.
        """
        entry = self._journal.read(instance_uuid, source)
        if entry is None or entry.step is not _Step.HELD:
            return
        replaced = self._journal.read(instance_uuid, target)
        if replaced is not None:
            moving = {arq.handle.uuid for arq in entry.arqs}
            self._devices.unplug_all(
                arq for arq in replaced.arqs if arq.handle.uuid not in moving
            )
        # If the API has not heard of the last move, it knows the role before.
        known = (
            source if entry.moved_from in (None, target) else entry.moved_from
        )
        moved = dataclasses.replace(
            entry,
            role=target,
            moved_from=known,
            attempt=self._journal.next_attempt(instance_uuid),
        )
        self._journal.write(moved)
        # If this fails, the next report() or start removes what is left.
        self._try_remove_left(moved)
        self.try_report(instance_uuid)

    def report(self, instance_uuid: str) -> None:
        """Report to the API the instance's moves that it does not know.

        :raises AcceleratorError: it does not know one yet.
        """
        entries = [
            entry
            for entry in self._journal.entries()
            if entry.instance_uuid == instance_uuid
        ]
        # An older entry of the same ARQs is only left over from a move: the
        # newest entry has them.
        for entry in sorted(entries, key=lambda each: -each.attempt):
            if entry.moved_from is None or entry != self._journal.read(
                instance_uuid, entry.role
            ):
                continue
            self._remove_left(entry)
            self._report(entry, entry.moved_from)

    def _report(
        self, entry: attach_journal.AttachEntry, source: arq_types.Role
    ) -> None:
        known, _nothing = intents.agree(
            self._journal,
            entry,
            lambda numbered: self._api.move(
                entry.instance_uuid,
                source,
                entry.role,
                numbered.attempt,
                [arq.uuid for arq in entry.arqs],
            ),
        )
        self._journal.write(dataclasses.replace(known, moved_from=None))

    def try_report(self, instance_uuid: str) -> None:
        """Call :meth:`report`; if it fails, leave it for the next time."""
        with retries.retry_later(
            'The accelerator API does not know yet which role the '
            f'accelerators of instance {instance_uuid} have',
            instance_uuid,
        ):
            self.report(instance_uuid)

    def finish_interrupted(self) -> None:
        """Remove the entries that interrupted moves have left behind."""
        for entry in self._journal.entries():
            if entry.moved_from is not None:
                self._try_remove_left(entry)

    def _try_remove_left(self, entry: attach_journal.AttachEntry) -> None:
        with retries.retry_later(
            f'A move of the accelerators of instance {entry.instance_uuid} '
            'is not finished',
            entry.instance_uuid,
        ):
            self._remove_left(entry)

    def _remove_left(self, entry: attach_journal.AttachEntry) -> None:
        """Remove older entries of the ARQs that an entry has taken over.

        Their role is not always ``moved_from``. That is the role that the API
        knows, and two moves may happen while the API is away.

        :raises DeviceError: the disk refused.
        """
        moved = {arq.uuid for arq in entry.arqs}
        for left in self._journal.entries():
            if (
                left.instance_uuid == entry.instance_uuid
                and left.attempt < entry.attempt
                and moved & {arq.uuid for arq in left.arqs}
            ):
                self._journal.remove(left)
