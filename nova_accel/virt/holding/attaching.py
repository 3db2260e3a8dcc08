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

"""The bindings of this host's instances, from acquire to release.

On the host, the journal decides which devices go into a guest. In the cloud,
the API decides who owns an attach handle. Each step journals its intent
first. :meth:`Attachments.retry` later finishes or undoes interrupted steps.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses

from oslo_concurrency import lockutils

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model.providers import host_view
from nova_accel.model.providers import reshape
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts
from nova_accel.virt.holding import changes
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import retries
from nova_accel.virt.holding import role_changes

_Step = attach_journal.AttachStep


class Attachments:
    """The bindings of one host.

    :param held: answers from the same journal
    :param cleaner: is told which ARQs were just given back to the API
    :param guests: tells which devices guests have
    :param name_profile: has Nova's flavor of an instance name a device
        profile, or none
    """

    def __init__(
        self,
        nodename: str,
        journal: attach_journal.AttachJournal,
        held: holdings.Holdings,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        cleaner: cleaning.Cleaner,
        current: host_view.CurrentState,
        guests: all_guests.AllGuests,
        name_profile: changes.NameProfile,
    ) -> None:
        findings = current.findings
        self.held = held
        self._nodename = nodename
        self._journal = journal
        self._api = api
        self._devices = devices
        self._moves = role_changes.RoleChanges(journal, api, devices)
        self._releases = retries.Releases(
            journal, api, devices, cleaner, findings
        )
        self._attempts = attempts.Attempts(
            nodename,
            journal,
            held,
            api,
            devices,
            cleaner,
            self._releases,
            findings,
        )
        self._changes = changes.Changes(
            journal,
            api,
            devices,
            self._moves,
            self._attempts,
            self._releases,
            cleaner,
            current,
            name_profile,
        )
        self._guests = guests
        # The instances that a thread of this process changes.
        self._changing: set[str] = set()

    def hold(self, intent: intents.Intent) -> None:
        """Hold ARQs for an instance, see :mod:`.intents` for the ways.

        ARQs that the API has listed are held only if the journal has none.

        :raises Conflict: another instance of this host has a device of it.
        :raises AcceleratorError: the instance holds no more than before.
        """
        with self._locked(intent.instance_uuid):
            # Otherwise the API would give this role the ARQs that have moved
            # to another.
            self._moves.report(intent.instance_uuid)
            before = self._journal.read(intent.instance_uuid, intent.role)
            if before is None or not intent.is_listed:
                self._attempts.hold(intent, before)

    @contextlib.contextmanager
    def changing(self, instance_uuid: str) -> Iterator[None]:
        """Add ARQs and give others back in the body, see :mod:`.changes`.

        If the body fails before :meth:`commit`, what it has added is given
        back. A guest that does not let go of something keeps it until it is
        stopped.

        :raises DeviceError: the journal is damaged.
        """
        self._changing.add(instance_uuid)
        try:
            yield
        finally:
            self._changing.discard(instance_uuid)
            with (
                self._releases.retry_later(
                    instance_uuid, arq_types.Role.ACTIVE
                ),
                self._locked(instance_uuid),
            ):
                self._settle_unused(instance_uuid)

    def add(
        self,
        instance_uuid: str,
        project_id: str,
        wanted: Sequence[arq_types.WantedArq],
        claim: Callable[[], None],
        kept: Collection[str] | None = None,
    ) -> tuple[arq_types.Arq, ...]:
        """Hold further ARQs for an instance.

        :param claim: has the units allocated
        :param kept: the uuids of the ARQs that it is to have besides, if the
            limits of the project matter
        :returns: the new ARQs
        :raises AcceleratorError: it is to be settled.
        """
        with self._locked(instance_uuid):
            added = self._changes.add(
                instance_uuid,
                claim,
                lambda entry: self._api.additions(
                    instance_uuid,
                    entry.role,
                    entry.attempt,
                    project_id,
                    wanted,
                    kept,
                ),
            )
        if len(added) < len(wanted):
            # The journal was lost once, and another call had the number.
            raise exceptions.Conflict(
                f'the accelerator API gives instance {instance_uuid} nothing '
                'for a number that it has used before: try again'
            )
        return added

    def plug_added(
        self, instance_uuid: str, added: Collection[arq_types.Arq]
    ) -> None:
        """Make devices ready to go into the guest beside what it has.

        :raises DeviceError: a device is gone, or refused.
        """
        with self._locked(instance_uuid):
            self._devices.plug_all(added)

    def commit(
        self,
        instance_uuid: str,
        arqs: Sequence[arq_types.Arq],
        is_renamed: bool = False,
    ) -> None:
        """See :meth:`.changes.Changes.commit`."""
        with self._locked(instance_uuid):
            self._changes.commit(instance_uuid, arqs, is_renamed)

    def settle(self, instance_uuid: str) -> bool:
        """Give back what a change was to give back, if there was one.

        The caller knows that no guest has it any more.

        :returns: whether there was one
        :raises AcceleratorError: it is to be tried again.
        """
        with self._locked(instance_uuid):
            return self._changes.settle(instance_uuid)

    def recover(
        self,
        instance_uuid: str,
        role: arq_types.Role = arq_types.Role.ACTIVE,
        unadopted: Collection[str] = (),
    ) -> None:
        """Hold what only the API has of an instance, if anything.

        :param unadopted: the uuids of ARQs that its guest may have, and that
            perhaps no host has adopted
        :raises AcceleratorError: the instance holds no more than before.
        """
        of_instance = [
            binding
            for binding in self._api.bindings()
            if binding.instance_uuid == instance_uuid
        ]
        for binding in of_instance:
            if binding.role is role:
                self.hold(intents.recover(binding))
        arqs = [
            arq
            for binding in of_instance
            if binding.role is None
            for arq in binding.arqs
            if arq.uuid in unadopted
        ]
        if arqs:
            self.hold(intents.take_over(instance_uuid, arqs, role))

    def check_migratable(self, instance_uuid: str) -> None:
        """Make sure that the instance's devices allow a live migration.

        :raises DeviceError: a device does not allow it, or is gone.
        :raises Conflict: its accelerators are being changed.
        :raises ServiceUnavailable: the API does not know the instance's last
            move yet, so it could not tell the destination what it has.
        """
        with self._locked(instance_uuid):
            if self._changes.are_pending(instance_uuid):
                raise exceptions.Conflict(
                    f'the accelerators of instance {instance_uuid} are being '
                    'changed: a hard reboot ends the change'
                )
            for arq in self.held.arqs_of(instance_uuid):
                self._devices.check_migratable(arq)
            self._moves.report(instance_uuid)

    def migration_facts(
        self, instance_uuid: str, role: arq_types.Role = arq_types.Role.ACTIVE
    ) -> dict[str, Mapping[str, str]]:
        """The facts that both hosts of a live migration must share.

        :returns: address of a PCI function -> its facts, if it has any
        :raises DeviceError: one cannot be learnt, or a device is gone.
        """
        return self._devices.migration_facts(
            self.held.arqs_of(instance_uuid, role),
            are_plugged=role is not arq_types.Role.INCOMING,
        )

    def plug(
        self, instance_uuid: str, role: arq_types.Role = arq_types.Role.ACTIVE
    ) -> tuple[arq_types.Arq, ...]:
        """Make the instance's devices ready to go into its guest.

        :returns: its ARQs, none if it holds no accelerators
        :raises DeviceError: a device is gone, or refused.
        """
        with self._locked(instance_uuid):
            arqs = self.held.arqs_of(instance_uuid, role)
            self._devices.plug_all(arqs)
            return arqs

    def move(
        self,
        instance_uuid: str,
        source: arq_types.Role,
        target: arq_types.Role,
    ) -> None:
        """Move ARQs from one role to another, also while the API is away.

        The ARQs that the target held before are given back.

        :raises DeviceError: one of their devices refused; nothing has moved.
        """
        with self._locked(instance_uuid):
            self._moves.move(instance_uuid, source, target)

    def release(
        self,
        instance_uuid: str,
        role: arq_types.Role = arq_types.Role.ACTIVE,
        attempt: int | None = None,
    ) -> int:
        """Give back what the binding holds, now or later.

        Does not raise: a server can be deleted whatever its devices do. A
        release that fails is tried again by :meth:`retry`.

        :param attempt: release only what this attempt holds
        :returns: how many accelerators are given back
        """
        with (
            self._releases.retry_later(instance_uuid, role),
            self._locked(instance_uuid),
        ):
            entry = self._journal.read(instance_uuid, role)
            if entry is not None and attempt in (None, entry.attempt):
                self._releases.release(entry)
                return len(entry.arqs)
        return 0

    def finish_interrupted(self) -> None:
        """Finish the moves of a nova-compute that died.

        :meth:`retry` gives back what that was acquiring or releasing.
        """
        self._moves.finish_interrupted()

    def retry(self) -> None:
        """Finish the releases that failed, and tell the API of moves.

        Does not raise: a binding that fails does not stop the others.
        """
        for entry in self._journal.entries():
            with (
                self._releases.retry_later(entry.instance_uuid, entry.role),
                self._locked(entry.instance_uuid),
            ):
                # A thread that acquires keeps the lock until it has ended.
                if (
                    self._journal.read(entry.instance_uuid, entry.role)
                    != entry
                ):
                    continue
                if self._releases.is_due(entry):
                    self._releases.release(entry)
                elif entry.moved_from is not None:
                    self._moves.try_report(entry.instance_uuid)
                elif entry.instance_uuid not in self._changing:
                    self._settle_unused(entry.instance_uuid)
        self._releases.keep_failed(self._journal.keys())

    def _settle_unused(self, instance_uuid: str) -> None:
        """End a change, unless a guest still has what leaves.

        :raises AcceleratorError: it is to be tried again.
        """
        if not self._changes.are_pending(instance_uuid):
            return
        self._changes.rename(instance_uuid)
        left = self.held.left_by(instance_uuid)
        if self._guests.use_any((arq.handle for arq in left), instance_uuid):
            self._changes.tell_leaving(instance_uuid)
        else:
            self._changes.settle(instance_uuid)

    def mend(
        self,
        instance_uuid: str,
        listed: Iterable[host_binding.Binding] | None = None,
    ) -> None:
        """Learn from the API what damaged entries of an instance had.

        It costs nothing if there are none.

        :param listed: the API's bindings of this host, None to ask for them
        :raises DeviceError: one stays damaged.
        """
        if self._journal.damaged_of(instance_uuid):
            with self._all_of(instance_uuid):
                self._attempts.mend(instance_uuid, listed)

    def take_back(self, binding: host_binding.Binding) -> None:
        """Free a binding that only the API has, and no guest needs.

        :raises AcceleratorError: it is not freed yet.
        """
        entry = attach_journal.of_binding(binding)
        with self._locked(entry.instance_uuid):
            if self._journal.read(entry.instance_uuid, entry.role) is None:
                for arq in entry.arqs:
                    self.unplug_unheld(arq.handle)
                self._releases.release(dataclasses.replace(entry, arqs=()))

    def unplug_unheld(self, handle: attach_handle.AttachHandle) -> None:
        """Unplug a device, unless an instance holds it by now.

        :raises DeviceError: it refused.
        """
        with self._devices.locked(handle):
            if all(arq.handle.uuid != handle.uuid for arq in self.held.arqs()):
                self._devices.unplug(handle)

    def follow(self, move: reshape.ReshapeMove) -> None:
        """Journal that Placement has moved a unit to another provider.

        :raises DeviceError: the disk refused, or the journal is damaged.
        """
        with self._locked(move.instance_uuid):
            entry = self._journal.read(move.instance_uuid, move.role)
            if entry is not None:
                self._journal.write(
                    dataclasses.replace(
                        entry,
                        arqs=tuple(
                            dataclasses.replace(
                                arq, device_rp_uuid=move.target
                            )
                            if arq.handle.uuid == move.handle_uuid
                            else arq
                            for arq in entry.arqs
                        ),
                    )
                )

    @contextlib.contextmanager
    def _locked(self, instance_uuid: str) -> Iterator[None]:
        """Keep others from the instance's entries, none of them damaged.

        If one stays damaged, reading it raises DeviceError.
        """
        with self._all_of(instance_uuid):
            with retries.retry_later(
                f'What instance {instance_uuid} holds is not known',
                instance_uuid,
            ):
                self._attempts.mend(instance_uuid)
            yield

    def _all_of(
        self, instance_uuid: str
    ) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(f'nova_accel-{self._nodename}-{instance_uuid}')
