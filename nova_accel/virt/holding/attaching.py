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
import contextlib
import dataclasses

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import device_profile
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.model import provider_allocation
from nova_accel.model import reshape
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attempts
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import late_releases
from nova_accel.virt.holding import mending
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import refusal
from nova_accel.virt.holding import releases
from nova_accel.virt.holding import role_changes

LOG = logging.getLogger(__name__)

_Step = attach_journal.Step


class Attachments:
    """The bindings of one host.

    :param held: answers from the same journal
    :param cleaner: is told which ARQs were just given back to the API
    """

    def __init__(
        self,
        nodename: str,
        journal: attach_journal.Journal,
        held: holdings.Holdings,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        cleaner: cleaning.Cleaner,
        findings: host_findings.Findings,
    ) -> None:
        self.held = held
        self._nodename = nodename
        self._journal = journal
        self._api = api
        self._devices = devices
        self._cleaner = cleaner
        self._late = late_releases.LateReleases(findings)
        self._moves = role_changes.RoleChanges(journal, api, self._devices)
        self._releases = releases.Releases(journal, api, devices, cleaner)
        self._mending = mending.Mending(
            journal, api, self._hold_again, findings
        )

    def acquire(
        self,
        instance_uuid: str,
        project_id: str,
        asked: device_profile.Asked,
        allocations: Iterable[provider_allocation.ProviderAllocation],
        role: arq_types.Role = arq_types.Role.ACTIVE,
        numa_nodes: frozenset[int] = frozenset(),
        is_new: bool = False,
    ) -> None:
        """Bind an instance's ARQs; it keeps those that it holds already.

        :param numa_nodes: those of the guest's cells, none if no matter
        :param is_new: whether the limits of the project matter
        :raises Conflict: another instance of this host has what the API gave.
        :raises AcceleratorError: the instance holds no more than before.
        """
        wanted = project_id, asked, tuple(allocations), numa_nodes, is_new
        self._hold(
            instance_uuid,
            role,
            lambda attempt: self._api.acquire(
                instance_uuid, role, attempt, *wanted
            ),
        )

    def adopt(
        self,
        instance_uuid: str,
        arq_uuids: Collection[str],
        role: arq_types.Role = arq_types.Role.ACTIVE,
        is_new: bool = False,
    ) -> None:
        """Hold ARQs that Nova's own Cyborg client has bound to an instance.

        :param is_new: whether the limits of the project matter
        :raises AcceleratorError: the instance holds no more than before.
        """
        self._hold(
            instance_uuid,
            role,
            lambda attempt: self._api.adopt(
                instance_uuid, role, attempt, arq_uuids, is_new
            ),
        )

    def take_over(
        self,
        instance_uuid: str,
        arqs: Collection[arq_types.Arq],
        role: arq_types.Role = arq_types.Role.ACTIVE,
    ) -> None:
        """Hold ARQs that a guest may have, beside what the instance holds.

        Nova's own Cyborg client has bound them, as for :meth:`adopt`, and they
        may have been imported.

        :raises Conflict: another instance of this host has one of them, or the
            instance's own are being acquired or released.
        :raises AcceleratorError: the instance holds no more than before.
        """
        with self._locked(instance_uuid):
            self._moves.tell(instance_uuid)
            before = self._journal.read(instance_uuid, role)
            if before is not None and before.step is not _Step.HELD:
                raise exceptions.Conflict(
                    f'what instance {instance_uuid} holds ({role}) is '
                    f'{before.step} at the moment'
                )
            known = {arq.uuid: arq for arq in before.arqs} if before else {}
            known |= {arq.uuid: arq for arq in arqs}
            # A crash must not undo what a guest has. So the intent is "held":
            # what the API has not adopted by then is taken over again.
            entry = attach_journal.Entry(
                instance_uuid,
                role,
                self._journal.next_attempt(instance_uuid),
                _Step.HELD,
                tuple(known.values()),
            )
            with self._all_locked():
                taken = self.held.by_others(entry)
                if taken:
                    raise refusal.of(self._nodename, entry, taken)
                self._journal.write(entry)
            entry, held = attempts.granted(
                self._journal,
                entry,
                before,
                lambda attempt: self._api.adopt(
                    instance_uuid, role, attempt, known
                ),
            )
            self._journal.write(dataclasses.replace(entry, arqs=held))

    def take_over_of(
        self,
        instance_uuid: str,
        arq_uuids: Collection[str],
        role: arq_types.Role = arq_types.Role.ACTIVE,
    ) -> None:
        """:meth:`take_over` those that no host has adopted, if any.

        :raises AcceleratorError: the instance holds no more than before.
        """
        arqs = [
            arq
            for binding in self._api.bindings()
            if (binding.instance_uuid, binding.role) == (instance_uuid, None)
            for arq in binding.arqs
            if arq.uuid in arq_uuids
        ]
        if arqs:
            self.take_over(instance_uuid, arqs, role)

    def check_migratable(self, instance_uuid: str) -> None:
        """Make sure that the instance's devices allow a live migration.

        :raises DeviceError: a device does not allow it, or is gone.
        :raises ServiceUnavailable: the API does not know the instance's last
            move yet, so it could not tell the destination what it has.
        """
        with self._locked(instance_uuid):
            for arq in self.held.arqs_of(instance_uuid):
                self._devices.check_migratable(arq)
            self._moves.tell(instance_uuid)

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
            self._late.tried(instance_uuid, role),
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
                self._late.tried(entry.instance_uuid, entry.role),
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
                    self._moves.tell_or_warn(entry.instance_uuid)
        self._late.keep(self._journal.keys())

    def recover(self, binding: host_binding.Binding) -> None:
        """Hold again a binding that the API has and the journal has lost.

        :raises AcceleratorError: it has changed since, or nothing is known.
        """
        entry = attach_journal.of_binding(binding)
        with self._locked(entry.instance_uuid):
            if self._journal.read(entry.instance_uuid, entry.role) is None:
                self._hold_again(binding)

    def _hold_again(self, binding: host_binding.Binding) -> None:
        """See :meth:`recover`. Runs under the instance's lock."""
        entry = attach_journal.of_binding(binding)
        taken = self.held.by_others(entry)
        if taken:
            raise refusal.of(self._nodename, entry, taken)
        # A guest may have them. Therefore the entry is never "acquiring",
        # which a crash would undo. A binding that was acquired later still
        # keeps the greater number.
        attempt = entry.attempt + 1
        arqs = self._api.adopt(
            entry.instance_uuid, entry.role, attempt, binding.arq_uuids
        )
        self._journal.write(
            dataclasses.replace(entry, attempt=attempt, arqs=arqs)
        )

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
                self._mending.mend(instance_uuid, listed)

    def recover_of(self, instance_uuid: str, role: arq_types.Role) -> None:
        """Hold again the binding that the API has of an instance, if any.

        :raises AcceleratorError: it has changed since, or nothing is known.
        """
        for binding in self._api.bindings():
            if (binding.instance_uuid, binding.role) == (instance_uuid, role):
                self.recover(binding)

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

    def follow(self, move: reshape.Move) -> None:
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

    def _hold(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        ask: Callable[[int], tuple[arq_types.Arq, ...]],
    ) -> None:
        """Hold what the API gives to an attempt.

        :param ask: asks the API, with the number of the attempt
        """
        with self._locked(instance_uuid):
            # Otherwise the API would give this role the ARQs that have moved
            # to another.
            self._moves.tell(instance_uuid)
            last = self._journal.read(instance_uuid, role)
            if last is not None and last.step is _Step.RELEASING:
                # A device must be free before the API gives it to anyone.
                self._releases.release(last)
            before = self._journal.read(instance_uuid, role)
            entry = attach_journal.begun(
                instance_uuid,
                role,
                last,
                self._journal.next_attempt(
                    instance_uuid, after=last.attempt if last else 0
                ),
            )
            self._journal.write(entry)
            entry, arqs = attempts.granted(self._journal, entry, before, ask)
            kept = {arq.handle.uuid for arq in arqs}
            replaced = tuple(
                arq for arq in entry.arqs if arq.handle.uuid not in kept
            )
            try:
                self._devices.unplug_all(replaced)
            except exceptions.DeviceError:
                self._journal.write(
                    dataclasses.replace(
                        entry, step=_Step.RELEASING, arqs=arqs + replaced
                    )
                )
                raise
            self._cleaner.released(replaced)
            self._keep_or_refuse(
                dataclasses.replace(entry, step=_Step.HELD, arqs=arqs)
            )
            if kept != {arq.handle.uuid for arq in entry.arqs}:
                LOG.info(
                    'Instance %s got %s (%s)',
                    instance_uuid,
                    arq_types.in_words(arqs),
                    role,
                    instance_uuid=instance_uuid,
                )

    def _keep_or_refuse(self, entry: attach_journal.Entry) -> None:
        """Journal what the API gave, unless others have it on this host.

        See :mod:`.refusal` for how that can be.

        :raises Conflict: names them; what the API gave is given back.
        """
        # Two instances may be given the same device at the same time.
        with self._all_locked():
            taken = self.held.by_others(entry)
            if not taken:
                self._journal.write(entry)
                return
        with self._late.tried(entry.instance_uuid, entry.role):
            self._releases.release(
                dataclasses.replace(
                    entry,
                    arqs=tuple(
                        arq
                        for arq in entry.arqs
                        if arq.handle.uuid not in taken
                    ),
                )
            )
        raise refusal.of(self._nodename, entry, taken)

    @contextlib.contextmanager
    def _locked(self, instance_uuid: str) -> Iterator[None]:
        """Keep others from the instance's entries, none of them damaged.

        If one stays damaged, reading it raises DeviceError.
        """
        with self._all_of(instance_uuid):
            self._mending.mend_or_warn(instance_uuid)
            yield

    def _all_of(
        self, instance_uuid: str
    ) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(f'nova_accel-{self._nodename}-{instance_uuid}')

    def _all_locked(self) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(f'nova_accel-{self._nodename}')
