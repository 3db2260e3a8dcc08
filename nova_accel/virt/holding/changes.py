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
:meth:`Changes.commit` on the others. An instance may hold nothing before or
after. The callers have the instance's lock, and settle after each change,
however it has ended.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
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
from nova_accel.virt.holding import retries
from nova_accel.virt.holding import role_changes

_ACTIVE = arq_types.Role.ACTIVE

_Step = attach_journal.AttachStep

#: Has the flavor of an instance name a device profile, or none.
NameProfile = Callable[[str, str | None], None]


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
        releases: retries.Releases,
        cleaner: cleaning.Cleaner,
        current: host_view.CurrentState,
        name_profile: NameProfile,
    ) -> None:
        self._journal = journal
        self._api = api
        self._devices = devices
        self._moves = moves
        self._attempts = attempts_made
        self._releases = releases
        self._cleaner = cleaner
        self._current = current
        self._name_profile = name_profile
        # The attempts by which the API was told that guests hold on.
        self._told: dict[str, int] = {}

    def are_pending(self, instance_uuid: str) -> bool:
        """Whether an instance is being changed.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        return entry is not None and entry.leaving is not None

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
        :raises Conflict: the instance is being changed, or what it holds is
            being given back; or another instance of this host has a device of
            it.
        :raises AcceleratorError: of what is called.
        """
        self._moves.report(instance_uuid)
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None:
            entry = attach_journal.AttachEntry(
                instance_uuid, _ACTIVE, 0, _Step.ACQUIRING
            )
        elif entry.leaving is not None or entry.step is not _Step.HELD:
            raise exceptions.Conflict(
                f'the accelerators of instance {instance_uuid} are being '
                'changed already',
                public='the accelerators of the server are being changed '
                'already: stop the server, which ends that',
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
        if added:
            self._attempts.claim(
                dataclasses.replace(
                    entry,
                    step=_Step.HELD,
                    arqs=entry.arqs + added,
                    leaving=tuple(arq.uuid for arq in added),
                )
            )
        return added

    def commit(
        self,
        instance_uuid: str,
        arqs: Sequence[arq_types.Arq],
        is_renamed: bool = False,
    ) -> None:
        """Have the guest get these ARQs from now on, and no others.

        :param arqs: in the order in which the guest gets their devices
        :param is_renamed: whether Nova's flavor of the instance is to name
            their device profile
        :raises Conflict: the instance holds nothing.
        :raises DeviceError: the disk refused, nothing has changed.
        :raises ServiceUnavailable: Nova has not changed the flavor yet; all
            else is done.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None:
            raise exceptions.Conflict(
                f'instance {instance_uuid} holds nothing'
            )
        uuids = {arq.uuid for arq in arqs}
        left = tuple(arq for arq in entry.arqs if arq.uuid not in uuids)
        self._journal.write(
            dataclasses.replace(
                entry,
                arqs=(*arqs, *left),
                leaving=tuple(arq.uuid for arq in left),
                is_renamed=is_renamed,
            )
        )
        self.rename(instance_uuid)

    def rename(self, instance_uuid: str) -> None:
        """Have Nova's flavor name what is held, if it may not.

        :raises ServiceUnavailable: it is to be tried again.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is not None and entry.is_renamed:
            names = [arq.device_profile_name for arq in entry.kept]
            self._name_profile(instance_uuid, names[0] if names else None)
            self._journal.write(dataclasses.replace(entry, is_renamed=False))

    def tell_leaving(self, instance_uuid: str) -> None:
        """Tell the API once which ARQs the guest does not let go of.

        :raises AcceleratorError: it is to be tried again.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None or self._told.get(instance_uuid) == entry.attempt:
            return
        entry = self._numbered(
            entry,
            lambda numbered: self._keep(numbered, numbered.leaving or ()),
        )
        self._told[instance_uuid] = entry.attempt

    def settle(self, instance_uuid: str) -> bool:
        """Give back what leaves, whose devices no guest has any more.

        :returns: whether the instance was being changed
        :raises AcceleratorError: it is to be tried again.
        """
        entry = self._journal.read(instance_uuid, _ACTIVE)
        if entry is None or entry.leaving is None:
            return False
        self.rename(instance_uuid)
        self._devices.unplug_all(entry.left)
        entry = self._numbered(
            dataclasses.replace(entry, is_renamed=False),
            lambda numbered: (
                self._keep(numbered)
                if numbered.kept
                else self._releases.free(
                    instance_uuid, _ACTIVE, numbered.attempt
                )
            ),
        )
        self._take_excess(instance_uuid, {arq.uuid for arq in entry.left})
        # The cleaner is told while the journal still reserves them.
        self._cleaner.released(entry.left)
        if entry.kept:
            self._journal.write(
                dataclasses.replace(entry, arqs=entry.kept, leaving=None)
            )
        else:
            self._journal.remove(entry)
        self._told.pop(instance_uuid, None)
        return True

    def _numbered(
        self,
        entry: attach_journal.AttachEntry,
        ask: Callable[[attach_journal.AttachEntry], None],
    ) -> attach_journal.AttachEntry:
        """Tell the API something of an instance, by a new number.

        :returns: the entry with that number, which is journaled
        """
        entry = dataclasses.replace(
            entry, attempt=self._journal.next_attempt(entry.instance_uuid)
        )
        self._journal.write(entry)
        return intents.agree(self._journal, entry, ask)[0]

    def _keep(
        self, entry: attach_journal.AttachEntry, leaving: Sequence[str] = ()
    ) -> None:
        self._api.keep(
            entry.instance_uuid, _ACTIVE, entry.attempt, entry.kept, leaving
        )

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
