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

"""Attempts to hold what an intent says, and to mend what is damaged.

The journal gets the intent first, so a crash leaves nothing that no one knows.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import intents
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

_Step = attach_journal.AttachStep


class Attempts:
    """The attempts of one host. The callers have the instance's lock."""

    def __init__(
        self,
        nodename: str,
        journal: attach_journal.AttachJournal,
        held: holdings.Holdings,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        cleaner: cleaning.Cleaner,
        released: retries.Releases,
        findings: host_findings.Findings,
    ) -> None:
        self._nodename = nodename
        self._journal = journal
        self._held = held
        self._api = api
        self._devices = devices
        self._cleaner = cleaner
        self._releases = released
        self._findings = findings

    def hold(
        self,
        intent: intents.Intent,
        before: attach_journal.AttachEntry | None,
    ) -> None:
        """Journal an intent, ask the API, and journal what it gives.

        :param before: the entry that the journal has, None if it has none
        :raises Conflict: another instance of this host has a device of it.
        :raises AcceleratorError: the instance holds no more than before.
        """
        number = self._journal.next_attempt(intent.instance_uuid)
        if before is not None and before.step is _Step.RELEASING:
            # A device must be free before the API gives it to anyone.
            self._releases.release(before)
            before = None
        entry = intent.begin(before, number)
        self.claim(entry, is_journaled=not intent.is_listed)
        entry, arqs = self._ask(intent, entry, before)
        given = dataclasses.replace(entry, step=_Step.HELD, arqs=arqs)
        if before is not None:
            self._drop_replaced(before, given)
        try:
            self.claim(given)
        except exceptions.Conflict:
            if not intent.arqs and not intent.is_listed:
                self._give_back(given)
            raise
        if _handles(given) != _handles(entry):
            LOG.info(
                'Instance %s got %s (%s)',
                entry.instance_uuid,
                arq_types.in_words(arqs),
                entry.role,
                instance_uuid=entry.instance_uuid,
            )

    def mend(
        self,
        instance_uuid: str,
        listed: Iterable[host_binding.Binding] | None = None,
    ) -> None:
        """Replace the damaged entries of an instance, if it has any.

        The host cannot trust them, and must not lose what they said: the guest
        may have these devices. So it journals what the API says. The damaged
        file is put aside, where people can look at it.

        :param listed: the API's bindings of this host, None to ask for them
        :raises DeviceError: one stays damaged, because the API does not
            answer, or what it says cannot be held.
        """
        damaged = self._journal.damaged_of(instance_uuid)
        if not damaged:
            return
        try:
            known = {
                binding.role: binding
                for binding in (
                    self._api.bindings() if listed is None else listed
                )
                if binding.instance_uuid == instance_uuid
            }
            for role, why in damaged.items():
                self._mend(instance_uuid, role, known.get(role), why)
        except exceptions.AcceleratorError as error:
            raise exceptions.DeviceError(
                f'{"; ".join(damaged.values())}; that has failed: {error}'
            ) from error

    def _mend(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        binding: host_binding.Binding | None,
        why: str,
    ) -> None:
        """:raises AcceleratorError: the entry stays damaged."""
        moved = {
            arq.uuid
            for entry in self._journal.entries()
            if entry.instance_uuid == instance_uuid
            and entry.moved_from is not None
            for arq in entry.arqs
        }
        if binding is None or moved.issuperset(binding.arq_uuids):
            self._journal.put_aside(instance_uuid, role)
            outcome = 'by the accelerator API it holds nothing in this role'
        else:
            self.hold(intents.recover(binding), None)
            outcome = (
                'the accelerator API has reported what it holds: ARQs '
                f'{", ".join(binding.arq_uuids)}'
            )
        LOG.info(
            'The journal of instance %s (%s) is whole again: %s',
            instance_uuid,
            role,
            outcome,
            instance_uuid=instance_uuid,
        )
        repaired = finding.Finding(
            finding.Kind.JOURNAL,
            f'{outcome}; {why}',
            is_repaired=True,
            instance_uuid=instance_uuid,
        )
        self._findings.put('mended journal', [repaired])

    def _ask(
        self,
        intent: intents.Intent,
        entry: attach_journal.AttachEntry,
        before: attach_journal.AttachEntry | None,
    ) -> tuple[attach_journal.AttachEntry, tuple[arq_types.Arq, ...]]:
        """Ask the API for what an intent wants.

        If the API refuses, the instance holds what it held before. If it does
        not answer, what it may have bound is to be released.
        """
        if intent.is_listed:
            return entry, intent.ask(self._api, entry)
        try:
            return intents.agree(
                self._journal,
                entry,
                lambda numbered: intent.ask(self._api, numbered),
            )
        except Exception as error:
            self._give_up(entry, before, error)
            raise

    def _give_up(
        self,
        entry: attach_journal.AttachEntry,
        before: attach_journal.AttachEntry | None,
        error: Exception,
    ) -> None:
        """Journal what the instance holds after an attempt that failed."""
        if not isinstance(error, exceptions.AcceleratorError) or isinstance(
            error, exceptions.ServiceUnavailable
        ):
            # The API may have bound something: its answer may be lost.
            last = self._journal.read(entry.instance_uuid, entry.role) or entry
            if last.step is _Step.ACQUIRING:
                self._journal.write(
                    dataclasses.replace(last, step=_Step.RELEASING)
                )
        elif before is None:
            self._journal.remove(entry)
        else:
            self._journal.write(before)

    def _drop_replaced(
        self,
        before: attach_journal.AttachEntry,
        given: attach_journal.AttachEntry,
    ) -> None:
        """Unplug what the instance held and does not get again.

        :raises DeviceError: one refused; all is to be released.
        """
        kept = _handles(given)
        replaced = tuple(
            arq for arq in before.arqs if arq.handle.uuid not in kept
        )
        try:
            self._devices.unplug_all(replaced)
        except exceptions.DeviceError:
            self._journal.write(
                dataclasses.replace(
                    given, step=_Step.RELEASING, arqs=given.arqs + replaced
                )
            )
            raise
        self._cleaner.released(replaced)

    def claim(
        self, entry: attach_journal.AttachEntry, is_journaled: bool = True
    ) -> None:
        """Journal an entry, unless others have its devices on this host.

        A database may be restored, or fail over without its last transactions.
        It then gives an instance a device that the guest of another one has.

        :param is_journaled: whether it is written, and not only compared
        :raises Conflict: names the others. It is logged here.
        """
        # Two instances may be given the same device at the same time.
        with lockutils.lock(f'nova_accel-{self._nodename}'):
            taken = self._held.by_others(entry)
            if is_journaled and not taken:
                self._journal.write(entry)
        if taken:
            raise self._refusal(entry, taken)

    def _refusal(
        self, entry: attach_journal.AttachEntry, taken: Mapping[str, str]
    ) -> exceptions.Conflict:
        words = '; '.join(
            f'the accelerator API gives {arq.handle.address} of host '
            f'{self._nodename} to instance {entry.instance_uuid}, and by '
            f"the host's journal instance {taken[arq.handle.uuid]} has it"
            for arq in entry.arqs
            if arq.handle.uuid in taken
        )
        LOG.error(
            'Accelerators are refused: %s. Has the database of '
            'accelerators lost its last transactions?',
            words,
            instance_uuid=entry.instance_uuid,
        )
        return exceptions.Conflict(words)

    def _give_back(self, entry: attach_journal.AttachEntry) -> None:
        """Release what the API gave, but for what others have."""
        taken = self._held.by_others(entry)
        kept = tuple(arq for arq in entry.arqs if arq.handle.uuid not in taken)
        with self._releases.retry_later(entry.instance_uuid, entry.role):
            self._releases.release(dataclasses.replace(entry, arqs=kept))


def _handles(entry: attach_journal.AttachEntry) -> set[str]:
    return {arq.handle.uuid for arq in entry.arqs}
