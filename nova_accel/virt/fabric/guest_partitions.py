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

"""The partitions of NVSwitches, active exactly while their guests run.

A partition is activated before the guest starts, and deactivated after it is
gone. The host's journal has each step before and after. All steps of a host
are taken one after the other, because they change the same switches.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import functools

from oslo_concurrency import lockutils
from oslo_log import log as logging
import tenacity

from nova_accel import exceptions
from nova_accel.host import fabric_manager
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.model.links import fabric
from nova_accel.virt.fabric import damaged_entries
from nova_accel.virt.fabric import fabric_need
from nova_accel.virt.fabric import fabric_watch
from nova_accel.virt.fabric import no_fabric
from nova_accel.virt.fabric import partition_journal

LOG = logging.getLogger(__name__)

_Step = fabric.PartitionStep
_RETRY_AFTER_S = 1

# How often a partition may be lost while its guest waits.
_MOST_LOOKS = 3


class GuestPartitions(no_fabric.NoFabric):
    """The partitions of one host's guests.

    :param boot_id: the kernel's name of this boot of the host
    :param need: knows which GPUs guests get, and which guests run
    :param wait_s: how long the start of a guest waits for Fabric Manager
    """

    def __init__(
        self,
        nodename: str,
        boot_id: str,
        journal: partition_journal.PartitionJournal,
        manager: fabric_manager.FabricManager,
        need: fabric_need.Need,
        wait_s: float,
        interval_s: float,
        findings: host_findings.Findings,
    ) -> None:
        self._nodename = nodename
        self._boot_id = boot_id
        self._journal = journal
        self._manager = manager
        self._need = need
        self._mending = damaged_entries.Mending(
            boot_id, journal, manager, need
        )
        self._wait_s = wait_s
        self._watch = fabric_watch.FabricWatch(self.repair, interval_s)
        # Instance -> how many calls of Nova work on its guest.
        self._busy: collections.Counter[str] = collections.Counter()
        self._findings = findings
        self._foreign: frozenset[int] = frozenset()

    def partitions(self) -> tuple[fabric.Partition, ...]:
        with self._locked():
            self._list()
        return self._manager.usable_partitions() or ()

    def ready(self, instance_uuid: str, arqs: Iterable[arq_types.Arq]) -> None:
        gpus = self._need.gpus(arqs)
        if not gpus.handles:
            return
        with self._locked(), self._told_or_undone(instance_uuid):
            self._patiently(functools.partial(self._join, instance_uuid, gpus))

    def has(self, instance_uuid: str) -> bool:
        return bool(self._journal.of_instance(instance_uuid))

    def is_for(self, arqs: Iterable[arq_types.Arq]) -> bool:
        return bool(self._need.gpus(arqs).handles)

    def confirm(self, instance_uuid: str) -> None:
        if not self.has(instance_uuid):
            return
        with self._locked(), self._told_or_undone(instance_uuid):
            self._patiently(functools.partial(self._look_again, instance_uuid))

    def let_go(self, handle_uuid: str) -> None:
        if not any(self._with(handle_uuid)):
            return
        with self._locked():
            for entry in self._with(handle_uuid):
                self._deactivate_or_warn(entry)

    @contextlib.contextmanager
    def during(self, instance_uuid: str) -> Iterator[None]:
        with self._locked_for(instance_uuid):
            self._busy[instance_uuid] += 1
        try:
            yield
        finally:
            with self._locked_for(instance_uuid):
                self._busy[instance_uuid] -= 1
                if not self._busy[instance_uuid]:
                    del self._busy[instance_uuid]
                    self._settle(instance_uuid)

    def begin(self) -> None:
        with self._locked():
            for entry in self._journal.entries():
                if entry.boot_id != self._boot_id:
                    self._forget_boot(entry)

    def repair(self) -> None:
        with self._locked():
            partitions = self._list()
            if partitions is None:
                return
            if self._mending.mend(partitions):
                partitions = self._list() or ()
            entries = self._journal.entries()
            found = fabric.repairs(partitions, entries, self._needed())
            wrong = [
                each
                for entry in (*found.deactivate, *found.forget)
                for each in self._deactivate_or_warn(entry)
            ]
            wrong += [self._activate_again(entry) for entry in found.activate]
            wrong += self._tell_foreign(found.foreign)
            self._findings.put('partitions', wrong)

    def watch(self) -> None:
        self._watch.begin()

    def end(self) -> None:
        self._watch.end()

    def _forget_boot(self, entry: fabric.PartitionEntry) -> None:
        try:
            self._journal.write(
                dataclasses.replace(entry, step=_Step.DEACTIVATING)
            )
        except exceptions.DiskError as error:
            # A full disk must not keep nova-compute from starting.
            LOG.error(
                'Partition %s of the NVSwitch fabric is still said to be '
                'active: %s',
                entry.number,
                error,
            )

    @contextlib.contextmanager
    def _told_or_undone(self, instance_uuid: str) -> Iterator[None]:
        """Log why a guest does not start, and undo what is half done."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, exceptions.AcceleratorError):
                LOG.error(
                    'The guest of instance %s does not start, because its '
                    'GPUs cannot be joined: %s',
                    instance_uuid,
                    error,
                    instance_uuid=instance_uuid,
                )
            for entry in self._journal.of_instance(instance_uuid):
                if entry.step is _Step.ACTIVATING:
                    # Fabric Manager may have done it, or a part of it.
                    self._deactivate_or_warn(entry)
            raise

    def _patiently(self, attempt: Callable[[], None]) -> None:
        """Wait for a Fabric Manager that is not ready, at any step.

        :raises FabricNotReady: it is not ready in time.
        """
        tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(exceptions.FabricNotReady),
            wait=tenacity.wait_fixed(_RETRY_AFTER_S),
            stop=tenacity.stop_after_delay(self._wait_s),
            reraise=True,
        )(attempt)

    def _join(self, instance_uuid: str, gpus: fabric_need.Gpus) -> None:
        """:raises AcceleratorError: the GPUs cannot be joined."""
        partitions = self._list()
        if partitions is None:
            LOG.warning(
                'Instance %s gets no partition of NVSwitches: Fabric '
                'Manager does not manage any',
                instance_uuid,
            )
            return
        self._mending.mend(partitions)
        wanted = self._wanted(instance_uuid, gpus, partitions)
        self._make_way(wanted)
        self._activate(wanted)

    def _look_again(self, instance_uuid: str) -> None:
        """Activate what was lost, until a look finds all active.

        :raises AcceleratorError: it cannot be activated, or is lost each time.
        """
        for _look in range(_MOST_LOOKS):
            lost = [
                entry
                for entry in self._journal.of_instance(instance_uuid)
                if entry.step is not _Step.ACTIVE or not self._is_active(entry)
            ]
            if not lost:
                return
            for entry in lost:
                LOG.warning(
                    'Fabric Manager has lost partition %s of instance %s '
                    'before its guest runs; activating it again',
                    entry.number,
                    instance_uuid,
                    instance_uuid=instance_uuid,
                )
                self._activate(
                    dataclasses.replace(entry, step=_Step.ACTIVATING)
                )
        raise exceptions.FabricError(
            f'Fabric Manager has lost the partition of {instance_uuid} '
            f'{_MOST_LOOKS} times before its guest ran'
        )

    def _wanted(
        self,
        instance_uuid: str,
        gpus: fabric_need.Gpus,
        partitions: Iterable[fabric.Partition],
    ) -> fabric.PartitionEntry:
        """:raises DeviceError: the GPUs are no partition."""
        partition = fabric.exact(partitions, gpus.module_ids)
        return gpus.entry(
            partition, instance_uuid, _Step.ACTIVATING, self._boot_id
        )

    def _make_way(self, wanted: fabric.PartitionEntry) -> None:
        """Deactivate what guests that are gone have left.

        :raises Conflict: a guest that is not gone has one of the GPUs.
        :raises DeviceError: Fabric Manager refuses.
        """
        for entry in self._journal.entries():
            if not (
                entry.module_ids & wanted.module_ids
                or entry.number == wanted.number
                or entry.instance_uuid == wanted.instance_uuid
            ):
                continue
            is_own = entry.instance_uuid == wanted.instance_uuid
            if is_own and entry.is_same(wanted):
                continue
            if not is_own and self._is_needed(entry):
                raise exceptions.Conflict(
                    f'instance {entry.instance_uuid} has partition '
                    f'{entry.number} ({fabric.modules(entry.module_ids)}) of '
                    'the NVSwitch fabric'
                )
            self._deactivate(entry)

    def _activate(self, wanted: fabric.PartitionEntry) -> None:
        """:raises AcceleratorError: the partition is not active."""
        partitions = self._list() or ()
        partition = fabric.exact(partitions, wanted.module_ids)
        is_ours = any(
            entry.is_same(wanted) for entry in self._journal.entries()
        )
        in_the_way = list(fabric.conflicts(partition, partitions))
        if partition.is_active and not is_ours:
            in_the_way.append(partition)
        if in_the_way:
            raise exceptions.Conflict(
                f'{in_the_way[0]} of the NVSwitch fabric is active, and '
                'nova-compute has not activated it: deactivate it with '
                f'"fmpm -d {in_the_way[0].number}" when no one uses its GPUs'
            )
        if not partition.is_active:
            self._journal.write(wanted)
            self._ask_to_activate(wanted)
        self._journal.write(dataclasses.replace(wanted, step=_Step.ACTIVE))

    def _ask_to_activate(self, wanted: fabric.PartitionEntry) -> None:
        self._manager.activate(wanted.number, wanted.functions)
        if not self._is_active(wanted):
            raise exceptions.FabricError(
                f'partition {wanted.number} of the NVSwitch fabric is not '
                'active, although Fabric Manager was asked to activate it'
            )

    def _activate_again(self, entry: fabric.PartitionEntry) -> finding.Finding:
        """Give a running guest back what a restart has taken from it."""
        words = (
            f'partition {entry.number} of the NVSwitch fabric was not active '
            'any more, although the server has it; its guest may need a reboot'
        )
        LOG.warning(
            'Partition %s of the NVSwitch fabric is not active any more, but '
            'instance %s has it; activating it again. Its guest may need a '
            'reboot. Was Fabric Manager restarted without '
            'FABRIC_MODE_RESTART=1, or is fabric_manager_command older than '
            'April 2026?',
            entry.number,
            entry.instance_uuid,
            instance_uuid=entry.instance_uuid,
        )
        try:
            self._ask_to_activate(entry)
            self._journal.write(dataclasses.replace(entry, step=_Step.ACTIVE))
        except exceptions.AcceleratorError as error:
            LOG.error(
                'The GPUs of instance %s are not joined: %s',
                entry.instance_uuid,
                error,
                instance_uuid=entry.instance_uuid,
            )
            return _finding(entry, f'{words}; it is not activated: {error}')
        return _finding(entry, words, is_repaired=True)

    def _settle(self, instance_uuid: str) -> None:
        """Deactivate what the instance's guest does not need any more."""
        try:
            needed = self._needed()
            for entry in self._journal.of_instance(instance_uuid):
                if entry.number not in needed:
                    self._deactivate_or_warn(entry)
        except Exception:
            # A bug here must not fail what Nova has done to the guest.
            LOG.exception(
                'The partitions of instance %s stay active until they are '
                'compared with the guests',
                instance_uuid,
                instance_uuid=instance_uuid,
            )

    def _deactivate_or_warn(
        self, entry: fabric.PartitionEntry
    ) -> list[finding.Finding]:
        """Deactivate a partition, or say why it still is active."""
        try:
            self._deactivate(entry)
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'Partition %s of the NVSwitch fabric is not deactivated yet, '
                'although instance %s does not need it; trying again later: '
                '%s',
                entry.number,
                entry.instance_uuid,
                error,
                instance_uuid=entry.instance_uuid,
            )
            return [
                _finding(
                    entry,
                    f'partition {entry.number} of the NVSwitch fabric is not '
                    'deactivated yet, although the server does not need it: '
                    f'{error}',
                )
            ]
        return []

    def _deactivate(self, entry: fabric.PartitionEntry) -> None:
        """:raises AcceleratorError: it may still be active."""
        self._journal.write(
            dataclasses.replace(entry, step=_Step.DEACTIVATING)
        )
        if self._is_active(entry):
            self._manager.deactivate(entry.number)
            if self._is_active(entry):
                raise exceptions.FabricError(
                    f'partition {entry.number} of the NVSwitch fabric is '
                    'active, although Fabric Manager was asked to deactivate '
                    'it'
                )
        self._journal.remove(entry)

    def _is_active(self, entry: fabric.PartitionEntry) -> bool:
        return any(
            entry.is_of(each) and each.is_active for each in self._list() or ()
        )

    def _list(self) -> tuple[fabric.Partition, ...] | None:
        """:raises DeviceError: Fabric Manager is not ready."""
        try:
            return self._manager.partitions()
        except exceptions.FabricNotReady:
            # Fabric Manager does not say whether it starts or waits.
            active = fabric.partitions_to_restore(
                self._journal.entries(),
                self._needed(),
                self._journal.damaged_numbers(),
            )
            if not self._manager.restore(active):
                raise
            LOG.warning(
                'Fabric Manager was restarted, and is told that the '
                'partitions %s are active',
                list(active),
            )
            return self._manager.partitions()

    def _tell_foreign(
        self, foreign: Iterable[fabric.Partition]
    ) -> list[finding.Finding]:
        """Log each partition that is not ours once."""
        words = {
            each.number: (
                f'Partition {each.number} of the NVSwitch fabric is active, '
                'and nova-compute has not activated it: no guest gets its GPUs'
            )
            for each in foreign
        }
        for number in sorted(words.keys() - self._foreign):
            LOG.warning(words[number])
        self._foreign = frozenset(words)
        return [
            finding.Finding(finding.Kind.PARTITION, words[number])
            for number in sorted(words)
        ]

    def _is_needed(self, entry: fabric.PartitionEntry) -> bool:
        """:raises AcceleratorError: libvirt, or the journal, does not say."""
        return self._need.has(entry, is_busy=entry.instance_uuid in self._busy)

    def _needed(self) -> frozenset[int]:
        """The partitions that guests have, or may have."""
        found = set()
        for entry in self._journal.entries():
            try:
                if self._is_needed(entry):
                    found.add(entry.number)
            except exceptions.AcceleratorError as error:
                LOG.warning(
                    'Partition %s of the NVSwitch fabric stays active: %s',
                    entry.number,
                    error,
                    instance_uuid=entry.instance_uuid,
                )
                found.add(entry.number)
        return frozenset(found)

    def _with(self, handle_uuid: str) -> list[fabric.PartitionEntry]:
        return [
            entry
            for entry in self._journal.entries()
            if handle_uuid in entry.handles
        ]

    def _locked_for(
        self, instance_uuid: str
    ) -> contextlib.AbstractContextManager[object]:
        """The lock, if the instance has a partition that could be lost."""
        if self._journal.of_instance(instance_uuid):
            return self._locked()
        return contextlib.nullcontext()

    def _locked(self) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(f'nova_accel-{self._nodename}-fabric')


def _finding(
    entry: fabric.PartitionEntry, words: str, is_repaired: bool = False
) -> finding.Finding:
    return finding.Finding(
        finding.Kind.PARTITION, words, is_repaired, entry.instance_uuid
    )
