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

"""The last programming of a region, and what that says of the contents.

If a programming fails or is interrupted, the region is bad until another one
succeeds. Else the device is asked whether it still says the same.
"""

import dataclasses
import datetime
import enum
from typing import Any

from nova_accel import exceptions
from nova_accel.model import decoding
from nova_accel.model.devices import programmable
from nova_accel.model.devices import stated_properties
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_contents

#: Instances that are remembered for a region, which has far fewer units.
_MAX_SERVED = 64


class RegionStep(enum.StrEnum):
    """How far the programming of a region has got."""

    PROGRAMMING = 'programming'
    PROGRAMMED = 'programmed'
    #: It failed or was interrupted: no one knows what the region holds.
    BAD = 'bad'


@dataclasses.dataclass(frozen=True)
class RegionEntry:
    """A region, and its last programming.

    ``device`` is the name of its device, and ``record`` the last programming.
    ``sha256``, ``function_uuids`` and ``owner`` are those of the bitstream
    that was, or was to be, programmed. See
    :class:`nova_accel.model.devices.programmable.Contents` for the owner.

    ``loaded`` is the text that the device said when the programming was done.
    Until then it is the text from before, None if the device said nothing.
    ``boot_id`` is the kernel's name of the boot in which that was.

    ``served`` are the instances that were given the region since then.
    ``fallback`` is the operator's last circuit that it held before, None if
    there was none.
    """

    device: str
    step: RegionStep
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
        if self.step is not RegionStep.PROGRAMMED or self.loaded is None:
            return None
        return self.contents_with(self.loaded)

    def contents_with(self, loaded: str) -> programmable.Contents:
        """The contents, if the device says this text for the bitstream."""
        return programmable.Contents(
            self.record.bitstream_id,
            self.sha256,
            loaded,
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

    def circuit_of(
        self, instance_uuid: str | None
    ) -> programmable.Circuit | None:
        """The circuit with which an instance was given the region, if any."""
        return (
            self.circuit
            if self.step is RegionStep.PROGRAMMED
            and instance_uuid in self.served
            else None
        )

    def give_to(
        self,
        instance_uuid: str | None,
        bitstream: fpga_bitstream.Bitstream | None,
    ) -> 'RegionEntry':
        """The entry after the region is given to an instance, if any.

        :param bitstream: the one that it holds, as its image now states it
        """
        served = self.served
        if instance_uuid is not None and instance_uuid not in served:
            served = (*served[1 - _MAX_SERVED :], instance_uuid)
        circuit = self if bitstream is None else bitstream
        return dataclasses.replace(
            self,
            served=served,
            function_uuids=circuit.function_uuids,
            owner=circuit.owner,
        )

    def ended(
        self,
        at: datetime.datetime,
        failure: str | None,
        loaded: str | None = None,
    ) -> 'RegionEntry':
        """The entry after the programming has ended.

        :param failure: None if it has not failed
        :param loaded: the text that the device then says, if any
        """
        asker = self.record.asker.instance_uuid
        return dataclasses.replace(
            self,
            record=self.record.ended(at, failure),
            loaded=loaded,
            step=RegionStep.PROGRAMMED if failure is None else RegionStep.BAD,
            served=() if asker is None else (asker,),
        )

    def unclean(self, blank: str | None) -> region_contents.Unclean | None:
        """The reason why not every project may get the region, if any.

        :param blank: the id of the bitstream that cleans the region, if any
        """
        if self.owner is None or self.region == programmable.SHELL:
            return None
        cure = (
            '; it is programmed before another project gets it'
            if blank is not None or self.fallback is not None
            else ', and other projects get it only with a bitstream that they '
            'ask for: set "clean": "program" and clean_bitstream, or program '
            'it'
        )
        return region_contents.Unclean(
            self.owner, f"it may hold a circuit of a project's own{cure}"
        )

    def contents_after_failure(
        self, unclean: region_contents.Unclean | None
    ) -> region_contents.KnownContents:
        """The knowledge of a region whose programming did not succeed."""
        failure = (
            f'not programmed with {self.record.bitstream_id}: '
            f'{self.record.failure or "it was cut short"}'
        )
        if unclean is None or self.step is not RegionStep.BAD:
            return region_contents.KnownContents(fault=failure)
        # That bitstream is at fault; another one may work.
        return region_contents.KnownContents(
            unclean=region_contents.Unclean(
                programmable.UNKNOWN_OWNER, f'{unclean.reason} ({failure})'
            )
        )

    def contents_after_success(
        self,
        said: str,
        is_same_boot: bool,
        tells_contents: bool,
        unclean: region_contents.Unclean | None,
    ) -> region_contents.KnownContents:
        """The knowledge of a region that was programmed.

        :param said: the device's word now
        :param is_same_boot: whether the host has not been booted since
        :param tells_contents: whether the device says a different text for
            each bitstream
        """
        if said == self.loaded and (is_same_boot or tells_contents):
            return region_contents.KnownContents(
                self.contents, unclean=unclean
            )
        if not is_same_boot:
            # The region has lost its contents if it was without power when
            # the host was booted. Some regions say so.
            return region_contents.KnownContents(
                unclean=None if tells_contents else unclean
            )
        return region_contents.KnownContents(
            fault=(
                f'it was programmed by others: it says {said!r}, and said '
                f'{self.loaded!r} when it was programmed with '
                f'{self.record.bitstream_id}'
            )
        )

    def check_loaded(
        self,
        before: programmable.Contents | None,
        tells_contents: bool,
        bitstream: fpga_bitstream.Bitstream,
        loaded: str,
    ) -> None:
        """Make sure that the device can hold what was just programmed.

        :param before: the contents before that, if they were known
        :raises DeviceError: by its word now, ``loaded``, it cannot.
        """
        shell_id = bitstream.provides_shell_id
        if shell_id not in (None, loaded):
            raise exceptions.DeviceError(f'it is {loaded}, not {shell_id}')
        if (
            tells_contents
            and loaded == self.loaded
            and before is not None
            and before.sha256 != self.sha256
        ):
            raise exceptions.DeviceError(
                f'it says {loaded!r} as before, when it held '
                f'{before.bitstream_id}'
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            **dataclasses.asdict(self),
            'step': str(self.step),
            'record': self.record.to_dict(),
        }


def from_dict(value: Any) -> RegionEntry:
    """The reverse of :meth:`RegionEntry.to_dict`.

    :raises Malformed: the value is no entry.
    """
    field = decoding.Fields(value)
    return RegionEntry(
        field('device', decoding.name),
        field('step', decoding.one_of(RegionStep)),
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
