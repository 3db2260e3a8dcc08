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

"""Changes of what an instance holds, while it keeps the rest.

A change adds ARQs, and gives others back. The journal says at each moment
which of them leave if nova-compute dies: first those that were added, and from
:meth:`Changes.commit` on the others. The callers have the instance's lock, and
settle after each change, however it has ended.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.client import our_allocations
from nova_accel.model import arq_types
from nova_accel.model.providers import counted
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import role_changes

_ACTIVE = arq_types.Role.ACTIVE


class Changes:
    """The changes of one host.

    :param moves: the API has to know them before it is asked
    :param attempts_made: journals what the API has given
    :param cleaner: is told which ARQs were just given back to the API
    """

    def __init__(
        self,
        journal: attach_journal.AttachJournal,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        moves: role_changes.RoleChanges,
        attempts_made: attempts.Attempts,
        cleaner: cleaning.Cleaner,
        current: host_view.CurrentState,
    ) -> None:
        self._journal = journal
        self._api = api
        self._devices = devices
        self._moves = moves
        self._attempts = attempts_made
        self._cleaner = cleaner
        self._current = current

    def leaving(self, instance_uuid: str) -> tuple[arq_types.Arq, ...] | None:
        """The ARQs that the instance gives back; None if it is not changed.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None or entry.leaving is None:
            return None
        return tuple(arq for arq in entry.arqs if arq not in entry.kept)

    def add(
        self,
        instance_uuid: str,
        claim: Callable[[], None],
        ask: Callable[[attach_journal.AttachEntry], tuple[arq_types.Arq, ...]],
    ) -> tuple[arq_types.Arq, ...]:
        """Hold further ARQs, which leave again unless they are committed.

        :param claim: has their units allocated
        :param ask: asks the API for them, with the number of the entry, and
            returns all ARQs that the instance then has
        :returns: the ARQs that are new
        :raises Conflict: the instance holds nothing, or is being changed; or
            another instance of this host has a device of it.
        :raises AcceleratorError: of what is called.
        """
        self._moves.report(instance_uuid)
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None or entry.step is not attach_journal.AttachStep.HELD:
            raise _holds_nothing(instance_uuid)
        if entry.leaving is not None:
            raise exceptions.Conflict(
                f'the accelerators of instance {instance_uuid} are being '
                'changed already'
            )
        entry = dataclasses.replace(
            entry,
            attempt=self._journal.next_attempt(instance_uuid),
            leaving=(),
        )
        self._journal.write(entry)
        claim()
        entry, arqs = intents.agree(self._journal, entry, ask)
        known = {arq.uuid for arq in entry.arqs}
        added = tuple(arq for arq in arqs if arq.uuid not in known)
        self._attempts.claim(
            dataclasses.replace(
                entry,
                arqs=entry.arqs + added,
                leaving=tuple(arq.uuid for arq in added),
            )
        )
        return added

    def commit(
        self,
        instance_uuid: str,
        replaced: Mapping[str, arq_types.Arq],
    ) -> None:
        """Have the guest get what was added from now on.

        :param replaced: the uuid of an ARQ that leaves -> the one that the
            guest gets instead, at the same place
        :raises Conflict: the instance holds nothing.
        :raises DeviceError: the disk refused, nothing has changed.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None:
            raise _holds_nothing(instance_uuid)
        self._journal.write(
            dataclasses.replace(
                entry,
                arqs=(
                    *(replaced.get(arq.uuid, arq) for arq in entry.kept),
                    *(arq for arq in entry.arqs if arq.uuid in replaced),
                ),
                leaving=tuple(replaced),
            )
        )

    def settle(self, instance_uuid: str) -> bool:
        """Give back what leaves, whose devices no guest has any more.

        :returns: whether the instance was being changed
        :raises AcceleratorError: it is to be tried again.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        leaving = self.leaving(instance_uuid)
        if entry is None or leaving is None:
            return False
        self._devices.unplug_all(leaving)
        entry = dataclasses.replace(
            entry, attempt=self._journal.next_attempt(instance_uuid)
        )
        self._journal.write(entry)
        entry, _kept = intents.agree(
            self._journal,
            entry,
            lambda numbered: self._api.adopt(
                instance_uuid,
                _ACTIVE,
                numbered.attempt,
                [arq.uuid for arq in numbered.kept],
            ),
        )
        self._take_excess(instance_uuid, {arq.uuid for arq in leaving})
        # The cleaner is told while the journal still reserves them.
        self._cleaner.released(leaving)
        self._journal.write(
            dataclasses.replace(entry, arqs=entry.kept, leaving=None)
        )
        return True

    def _take_excess(
        self, instance_uuid: str, leaving: Collection[str]
    ) -> None:
        """Take away what is allocated to the instance beyond what it keeps.

        :raises ServiceUnavailable: it is not taken away.
        """
        arqs = [
            arq
            for entry in self._journal.entries()
            if entry.instance_uuid == instance_uuid
            for arq in entry.arqs
        ]
        ours = self._current.view.layout.uuids.union(
            arq.device_rp_uuid for arq in arqs
        )
        excess = counted.excess(
            (arq for arq in arqs if arq.uuid not in leaving),
            our_allocations.read(instance_uuid).of(ours),
        )
        if excess:
            our_allocations.take_away(instance_uuid, excess)


def _holds_nothing(instance_uuid: str) -> exceptions.Conflict:
    return exceptions.Conflict(f'instance {instance_uuid} holds nothing')
