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

import dataclasses
import enum
import pathlib
from typing import Any

from nova_accel.model import decoding
from nova_accel.model import naming
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.model import stated_properties
from nova_accel.state import record_files

# Any uuid will do to name files.
_FILES = 'f0a6a2a5-4b0e-5a0e-9f43-0c9a1d0f7be2'


class Step(enum.StrEnum):
    """How far the programming of a region has got."""

    PROGRAMMING = 'programming'
    PROGRAMMED = 'programmed'
    #: It failed or was interrupted: nobody knows what the region holds.
    BAD = 'bad'


@dataclasses.dataclass(frozen=True)
class Entry:
    """A region, and its last programming.

    ``device`` is the name of its device, and ``record`` the last programming.
    ``sha256``, ``function_uuids`` and ``owner`` are those of the bitstream
    that was, or was to be, programmed. See
    :class:`nova_accel.model.programmable.Contents` for the owner.

    ``loaded`` is the text that the device said when the programming was done.
    Until then it is the text from before the programming. It is None if the
    device said nothing. ``boot_id`` is the kernel's name of the boot in which
    the region was programmed.

    ``served`` are the instances that were given the region since then.
    ``fallback`` is the operator's last circuit that it held before, None if
    there was none.
    """

    device: str
    step: Step
    record: programming_record.Record
    sha256: str
    function_uuids: tuple[str, ...]
    boot_id: str
    loaded: str | None = None
    served: tuple[str, ...] = ()
    owner: str | None = programmable.UNKNOWN_OWNER
    fallback: programmable.Circuit | None = None

    @property
    def region(self) -> str:
        """Its name, unique within the device."""
        return self.record.region

    @property
    def contents(self) -> programmable.Contents | None:
        """The contents that were programmed and read back, or None."""
        if self.step is not Step.PROGRAMMED or self.loaded is None:
            return None
        return programmable.Contents(
            self.record.bitstream_id,
            self.sha256,
            self.loaded,
            self.function_uuids,
            self.region == programmable.SHELL,
            self.owner,
        )

    @property
    def circuit(self) -> programmable.Circuit:
        """The circuit that was, or was to be, programmed."""
        return programmable.Circuit(
            self.record.bitstream_id,
            self.sha256,
            self.function_uuids,
            self.owner,
        )

    @property
    def operators(self) -> programmable.Circuit | None:
        """The last good circuit that every project may get."""
        return (
            self.circuit
            if self.contents is not None and self.owner is None
            else self.fallback
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            'device': self.device,
            'step': str(self.step),
            'record': self.record.to_dict(),
            'sha256': self.sha256,
            'function_uuids': list(self.function_uuids),
            'boot_id': self.boot_id,
            'loaded': self.loaded,
            'served': list(self.served),
            'owner': self.owner,
            'fallback': (
                None
                if self.fallback is None
                else dataclasses.asdict(self.fallback)
            ),
        }


def entry_from_dict(value: Any) -> Entry:
    """The reverse of :meth:`Entry.to_dict`.

    :raises Malformed: the value is no entry.
    """
    field = decoding.Fields(value)
    return Entry(
        field('device', decoding.name),
        field('step', decoding.one_of(Step)),
        field('record', programming_record.from_dict),
        field('sha256', _SHA256),
        field('function_uuids', _FUNCTIONS),
        field('boot_id', decoding.name),
        field('loaded', decoding.optional(decoding.words)),
        field('served', decoding.listed(decoding.uuid)),
        field('owner', _OWNER),
        field('fallback', decoding.optional(_circuit)),
    )


_SHA256 = decoding.matching(r'[0-9a-f]{64}\Z', 'a sha256 in hexadecimal')

_OWNER = decoding.optional(decoding.text)

_FUNCTIONS = decoding.listed(decoding.uuid, stated_properties.MAX_FUNCTIONS)


def _circuit(value: Any) -> programmable.Circuit:
    field = decoding.Fields(value)
    return programmable.Circuit(
        field('bitstream_id', decoding.uuid),
        field('sha256', _SHA256),
        field('function_uuids', _FUNCTIONS),
        field('owner', _OWNER),
    )


class RegionJournal:
    """The entries of one host, below ``directory``.

    If a file is damaged, nothing is known of its region. The name of the file
    is made of the region's, and does not tell it.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self._files = record_files.RecordFiles(
            directory,
            entry_from_dict,
            lambda entry: _name(entry.device, entry.region),
            'FPGA regions',
            'what the region holds is not known until it is programmed',
        )

    def read(self, device: str, region: str) -> Entry | None:
        """The entry of a region, None if it was never programmed.

        :raises DeviceError: the entry is damaged. It is replaced when the
            region is programmed.
        """
        return self._files.read(_name(device, region))

    def entries(self) -> list[Entry]:
        """Every entry that is not damaged."""
        return self._files.entries()

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of each damaged entry. Nobody knows whose it is."""
        return [(None, why) for why in sorted(self._files.damaged.values())]

    def write(self, entry: Entry) -> None:
        """Store the entry, so that it survives a crash of the host.

        :raises DeviceError: the disk refused.
        """
        self._files.write(entry)

    def forget(self, device: str, region: str) -> None:
        """Remove the entry of a region, if there is one.

        :raises DeviceError: the disk refused.
        """
        self._files.remove(_name(device, region))


def _name(device: str, region: str) -> str:
    # Drivers choose the names, but no driver may choose a path.
    return naming.derived_uuid(_FILES, device, region)
