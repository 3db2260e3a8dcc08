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

"""One attempt to program a region.

Its intent and its end are journaled. If nova-compute dies in between, the
next start decides how the attempt ended.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import datetime
import pathlib
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_accel import exceptions
from nova_accel.model import failure_cause
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.virt.fpga.regions import region_journal
from nova_accel.virt.fpga.regions import region_target

LOG = logging.getLogger(__name__)

_Step = region_journal.Step
_Target = region_target.Target


class Attempt:
    """An attempt to program a region that nobody uses.

    :param begun: the journal's entry with the intent
    :param before: the known contents of the region, if any
    :param shell_id: the id that the card has afterwards, for a shell
    """

    def __init__(
        self,
        journal: region_journal.RegionJournal,
        target: _Target,
        begun: region_journal.Entry,
        before: programmable.Contents | None,
        shell_id: str | None,
    ) -> None:
        self._journal = journal
        self._target = target
        self._begun = begun
        self._before = before
        self._shell_id = shell_id
        self._previous = self._entry_to_restore()

    def run(
        self,
        path: pathlib.Path,
        deadline: float,
        check_free: Callable[[], None],
    ) -> programmable.Contents:
        """Program the region, and read it back.

        See :meth:`nova_accel.virt.fpga.regions.host_regions.Regions.program`.
        """
        target, begun = self._target, self._begun
        try:
            self._journal.write(begun)
            with self._untouched():
                check_free()
            if target.region.is_shell:
                # The card's regions lose their contents with the old shell.
                for region in target.device.regions:
                    self._journal.forget(target.device.name, region.name)
            _try(target, path, deadline)
            loaded = target.loaded()
            self._check(loaded)
            _end(self._journal, begun, None, loaded)
        except exceptions.DeviceError as error:
            raise self._failed(error) from error
        return programmable.Contents(
            begun.record.bitstream_id,
            begun.sha256,
            loaded,
            begun.function_uuids,
            target.region.is_shell,
            begun.owner,
        )

    def _entry(self) -> region_journal.Entry | None:
        """:raises DeviceError: the entry is damaged."""
        return self._journal.read(
            self._target.device.name, self._target.region.name
        )

    def _entry_to_restore(self) -> region_journal.Entry | None:
        """The journal's entry to restore if the region is not touched."""
        try:
            return self._entry()
        except exceptions.DeviceError as error:
            return dataclasses.replace(
                self._begun,
                step=_Step.BAD,
                record=ended(self._begun.record, str(error)),
            )

    @contextlib.contextmanager
    def _untouched(self) -> Iterator[None]:
        """Restore the journal's entry if the body fails."""
        try:
            yield
        except Exception:
            if self._previous is not None:
                self._journal.write(self._previous)
            else:
                self._journal.forget(
                    self._target.device.name, self._target.region.name
                )
            raise

    def _check(self, loaded: str) -> None:
        """:raises DeviceError: the region does not hold the bitstream."""
        if self._shell_id not in (None, loaded):
            raise exceptions.DeviceError(
                f'it is {loaded}, not {self._shell_id}'
            )
        before = self._before
        if (
            self._target.tells_contents
            and loaded == self._begun.loaded
            and before is not None
            and before.sha256 != self._begun.sha256
        ):
            raise exceptions.DeviceError(
                f'it says {loaded!r} as before, when it held '
                f'{before.bitstream_id}'
            )

    def _failed(
        self, error: exceptions.DeviceError
    ) -> exceptions.AcceleratorError:
        """Journal that the region is bad, if it was touched.

        :returns: the fault to raise
        :raises DeviceError: the disk refused, or the journal is damaged.
        """
        bitstream_id = self._begun.record.bitstream_id
        failure = (
            f'{self._target} is not programmed with {bitstream_id}: {error}'
        )
        if self._entry() != self._begun:
            return exceptions.DeviceError(failure)
        _end(self._journal, self._begun, str(error))
        LOG.error(failure)
        if self._begun.owner is None or self._target.region.is_shell:
            return exceptions.DeviceError(failure)
        return exceptions.BitstreamUnusable(
            failure,
            bitstream_id,
            public=(
                'the FPGA refused it. Upload '
                'one that was built for this card and shell, or ask for '
                'another'
            ),
        )


def recover(
    journal: region_journal.RegionJournal,
    targets: Iterable[_Target],
    boot_id: str,
) -> list[programming_record.Record]:
    """Decide how the attempts ended during which nova-compute died.

    See :meth:`nova_accel.virt.fpga.regions.host_regions.Regions.recover`.

    :param targets: all regions and shells of the host
    :param boot_id: of the host's present boot
    """
    by_name = {
        (target.device.name, target.region.name): target for target in targets
    }
    records = []
    for entry in journal.entries():
        if entry.step is not _Step.PROGRAMMING:
            records.append(entry.record)
            continue
        target = by_name.get((entry.device, entry.region))
        loaded = target.loaded_if_any() if target else None
        is_done = (
            target is not None
            and target.tells_contents
            and loaded not in (None, entry.loaded)
            and entry.boot_id == boot_id
        )
        fault = None if is_done else failure_cause.INTERRUPTED
        LOG.warning(
            '%s of %s was being programmed with %s when '
            'nova-compute died: it %s',
            entry.region,
            entry.device,
            entry.record.bitstream_id,
            'is done' if is_done else 'is bad',
        )
        try:
            records.append(_end(journal, entry, fault, loaded))
        except exceptions.DeviceError as error:
            LOG.error(
                '%s of %s stays bad: %s', entry.region, entry.device, error
            )
    return records


def _end(
    journal: region_journal.RegionJournal,
    entry: region_journal.Entry,
    fault: str | None,
    loaded: str | None = None,
) -> programming_record.Record:
    """:raises DeviceError: the disk refused."""
    record = ended(entry.record, fault)
    asker = record.asker.instance_uuid
    journal.write(
        dataclasses.replace(
            entry,
            record=record,
            loaded=loaded,
            step=_Step.BAD if fault is not None else _Step.PROGRAMMED,
            served=() if asker is None else (asker,),
        )
    )
    return record


def ended(
    record: programming_record.Record, failure: str | None
) -> programming_record.Record:
    """The record of a programming that has ended now."""
    return dataclasses.replace(record, finished_at=now(), failure=failure)


def now() -> datetime.datetime:
    """The time now, with its time zone, UTC."""
    return timeutils.utcnow(with_timezone=True)


def left_s(deadline: float) -> float:
    """How long it is to a deadline of ``time.monotonic()``.

    :raises DeviceError: no time is left.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise exceptions.DeviceError(failure_cause.NO_TIME)
    return left


def _try(target: _Target, path: pathlib.Path, deadline: float) -> None:
    """Program a target, once more after a failure if its driver allows it.

    :raises DeviceError: it failed, also the second time if there was one.
    """
    try:
        return target.program(path, left_s(deadline))
    except exceptions.DeviceError as error:
        if (
            not target.driver.repeats_programming
            or target.region.is_shell
            or deadline <= time.monotonic()
        ):
            raise
        LOG.warning('%s is programmed once more: %s', target, error)
    target.program(path, left_s(deadline))
