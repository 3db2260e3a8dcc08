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

"""The journal of what FPGA regions hold, kept across restarts.

It has one small JSON file for each region. The intent is written before a
card is touched. The card's answer is written when the programming is done. So
after a crash nova-compute knows which regions it cannot trust.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import datetime
import pathlib
from typing import Protocol

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_entry
from nova_accel.model.units import failure_cause
from nova_accel.state import record_files

LOG = logging.getLogger(__name__)

# Any uuid will do to name files.
_FILES = 'f0a6a2a5-4b0e-5a0e-9f43-0c9a1d0f7be2'


_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


def boot_id() -> str:
    """The kernel's name of this boot of the host.

    See ``Documentation/admin-guide/sysctl/kernel.rst``.
    """
    return _BOOT_ID.read_text(encoding='ascii').strip()


class ContentsReader(Protocol):
    """The word of a device for what a region holds: a :class:`.Target`."""

    @property
    def tells_contents(self) -> bool:
        """Whether the device says a different text for each bitstream."""

    def loaded_if_any(self) -> str | None:
        """The text that it says now."""


class RegionJournal:
    """The entries of one host, below ``directory``.

    If a file is damaged, nothing is known of its region. The name of the file
    is made of the region's, and does not tell it.

    :param boot: see :func:`boot_id`
    """

    def __init__(self, directory: pathlib.Path, boot: str) -> None:
        self.directory = directory
        self.boot_id = boot
        self._files = record_files.RecordFiles(
            directory,
            region_entry.from_dict,
            lambda entry: _name(entry.device, entry.region),
            'FPGA regions',
            'what the region holds is not known until it is programmed',
        )

    def read(
        self, device: str, region: str
    ) -> region_entry.RegionEntry | None:
        """The entry of a region, None if it was never programmed.

        :raises DeviceError: the entry is damaged. It is replaced when the
            region is programmed.
        """
        return self._files.read(_name(device, region))

    def entries(self) -> list[region_entry.RegionEntry]:
        """Every entry that is not damaged."""
        return self._files.entries()

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of each damaged entry. No one knows whose it is."""
        return [(None, why) for why in sorted(self._files.damaged.values())]

    def write(self, entry: region_entry.RegionEntry) -> None:
        """Store the entry, so that it survives a crash of the host.

        :raises DeviceError: the disk refused.
        """
        self._files.write(entry)

    def forget(self, device: str, region: str) -> None:
        """Remove the entry of a region, if there is one.

        :raises DeviceError: the disk refused.
        """
        self._files.remove(_name(device, region))

    def begin(
        self,
        device: str,
        record: programming_record.Record,
        bitstream: fpga_bitstream.Bitstream,
        sha256: str,
        loaded: str | None,
        check_free: Callable[[], None],
    ) -> region_entry.RegionEntry:
        """Store the intent to program a region that no one uses.

        :param loaded: the text that the device says before that, if any
        :param check_free: raises if somebody uses the region. It is called
            after the intent is stored. A server journals what it has before
            it reads that intent, so one of the two sees the other. If it
            raises, the journal is as before
        :returns: the entry
        :raises DeviceError: the disk refused.
        """
        begun = region_entry.RegionEntry(
            device,
            region_entry.RegionStep.PROGRAMMING,
            record,
            sha256,
            bitstream.function_uuids,
            self.boot_id,
            loaded,
            owner=bitstream.owner,
        )
        previous = self._previous(begun)
        if previous is not None:
            begun = dataclasses.replace(begun, fallback=previous.operators)
        self.write(begun)
        try:
            check_free()
        except Exception:
            if previous is not None:
                self.write(previous)
            else:
                self.forget(device, record.region)
            raise
        return begun

    def _previous(
        self, begun: region_entry.RegionEntry
    ) -> region_entry.RegionEntry | None:
        """The entry to restore if the region is not touched."""
        try:
            return self.read(begun.device, begun.region)
        except exceptions.DeviceError as error:
            return begun.ended(_now(), str(error))

    def end(
        self,
        begun: region_entry.RegionEntry,
        failure: str | None,
        loaded: str | None = None,
    ) -> programming_record.Record:
        """Store how a programming ended.

        :param loaded: the text that the device now says, if any
        :raises DeviceError: the disk refused.
        """
        entry = begun.ended(_now(), failure, loaded)
        self.write(entry)
        return entry.record

    def recover(
        self, devices: Mapping[tuple[str, str], ContentsReader]
    ) -> list[programming_record.Record]:
        """Decide how the programmings ended during which nova-compute died.

        Nothing is programmed. A programming counts as done only if the device
        says a different text for each bitstream, and says a new one. After a
        boot of the host none counts as done.

        :param devices: (device, region) -> what tells of it
        :returns: the last programming of each region, of which the API may
            not know
        """
        records = []
        for entry in self.entries():
            key = entry.device, entry.region
            try:
                records.append(self._settled(entry, devices.get(key)))
            except exceptions.DeviceError as error:
                LOG.error('%s of %s stays bad: %s', *reversed(key), error)
        return records

    def _settled(
        self,
        entry: region_entry.RegionEntry,
        told: ContentsReader | None,
    ) -> programming_record.Record:
        """The record of a programming that has ended, or ends now."""
        if entry.step is not region_entry.RegionStep.PROGRAMMING:
            return entry.record
        loaded = told.loaded_if_any() if told else None
        is_done = (
            told is not None
            and told.tells_contents
            and loaded not in (None, entry.loaded)
            and entry.boot_id == self.boot_id
        )
        LOG.warning(
            '%s of %s was being programmed with %s when '
            'nova-compute died: it %s',
            entry.region,
            entry.device,
            entry.record.bitstream_id,
            'is done' if is_done else 'is bad',
        )
        return self.end(
            entry, None if is_done else failure_cause.INTERRUPTED, loaded
        )


def _name(device: str, region: str) -> str:
    # Drivers choose the names, but no driver may choose a path.
    return naming.derived_uuid(_FILES, device, region)


def _now() -> datetime.datetime:
    return timeutils.utcnow(with_timezone=True)
