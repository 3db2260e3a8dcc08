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
API is told at once, or when it is back. All code here runs under the
instance's lock.
"""

import dataclasses

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts
from nova_accel.virt.holding import plugging

LOG = logging.getLogger(__name__)

_Step = attach_journal.Step


class RoleChanges:
    """The moves of one host's bindings.

    :param devices: unplugs the devices of a binding that is replaced
    """

    def __init__(
        self,
        journal: attach_journal.Journal,
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
        """Journal the move, if the source holds anything, and tell the API.

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
        # If this fails, the next tell() or start removes what is left.
        self._remove_left_or_warn(moved)
        self.tell_or_warn(instance_uuid)

    def tell(self, instance_uuid: str) -> None:
        """Tell the API the instance's moves that it does not know.

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
            self._tell(entry, entry.moved_from)

    def _tell(
        self, entry: attach_journal.Entry, source: arq_types.Role
    ) -> None:
        told, _nothing = attempts.agreed(
            self._journal,
            entry,
            lambda attempt: self._api.move(
                entry.instance_uuid,
                source,
                entry.role,
                attempt,
                [arq.uuid for arq in entry.arqs],
            ),
        )
        self._journal.write(dataclasses.replace(told, moved_from=None))

    def tell_or_warn(self, instance_uuid: str) -> None:
        """Call :meth:`tell`; if it fails, leave the rest for the next time."""
        try:
            self.tell(instance_uuid)
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'The accelerator API does not know yet which role '
                'the accelerators of instance %s have, trying again '
                'later: %s',
                instance_uuid,
                error,
                instance_uuid=instance_uuid,
            )

    def finish_interrupted(self) -> None:
        """Remove the entries that interrupted moves have left behind."""
        for entry in self._journal.entries():
            if entry.moved_from is not None:
                self._remove_left_or_warn(entry)

    def _remove_left_or_warn(self, entry: attach_journal.Entry) -> None:
        try:
            self._remove_left(entry)
        except exceptions.DeviceError as error:
            LOG.warning(
                'A move of the accelerators of instance %s is not '
                'finished, trying again later: %s',
                entry.instance_uuid,
                error,
                instance_uuid=entry.instance_uuid,
            )

    def _remove_left(self, entry: attach_journal.Entry) -> None:
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
