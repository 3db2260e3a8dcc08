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

"""The FPGA regions of this host, and what they hold.

The contents of a region are always checked: the journal says what was
programmed, and the device is asked whether that is still so.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import pathlib

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_contents
from nova_accel.model.fpga import region_entry
from nova_accel.virt.fpga.regions import region_journal
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.holding import holdings

LOG = logging.getLogger(__name__)

_Target = region_target.Target


class Regions:
    """The regions of one host.

    :param drivers: name -> device driver
    :param changed: is called when a region may hold something else
    """

    def __init__(
        self,
        journal: region_journal.RegionJournal,
        drivers: Mapping[str, base.Driver],
        held: holdings.Holdings,
        changed: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._drivers = drivers
        self._held = held
        self._changed = changed
        self._devices: tuple[hardware.Device, ...] = ()
        # The keys of the regions that a thread is programming.
        self._live: set[tuple[str, str]] = set()

    def overlaid(
        self, devices: Iterable[hardware.Device]
    ) -> tuple[hardware.Device, ...]:
        """Devices with all that is known of their regions.

        :param devices: as they were found. From now on, :meth:`targets`
            answers for these
        """
        self._devices = tuple(devices)
        return tuple(map(self._overlaid, self._devices))

    def _overlaid(self, device: hardware.Device) -> hardware.Device:
        try:
            found = region_contents.overlaid(
                device,
                {
                    each.region.name: self._known(each, self._said_before_held)
                    for each in self._targets_of(device, is_shell=False)
                },
            )
            for shell in self._targets_of(device, is_shell=True):
                found = region_contents.with_shell(found, self.known(shell))
        # One card must not hide the others, whatever its driver says.
        except Exception as error:
            LOG.exception('What %s holds is not known', device.name)
            return dataclasses.replace(
                device, fault=f'what it holds is not known: {error!r}'
            )
        return found

    def targets(self, is_shell: bool = False) -> Iterator[_Target]:
        """All regions of the host, or the shells that can be replaced."""
        for device in self._devices:
            yield from self._targets_of(device, is_shell)

    def _targets_of(
        self, device: hardware.Device, is_shell: bool
    ) -> list[_Target]:
        regions = (device.shell,) if is_shell else device.regions
        return [
            _Target(device, region, self._drivers[device.driver])
            for region in regions
            if region is not None
        ]

    def known(self, target: _Target) -> region_contents.KnownContents:
        """The known contents of a region, checked with its device now."""
        return self._known(target, _Target.loaded)

    def _known(
        self, target: _Target, ask: Callable[[_Target], str]
    ) -> region_contents.KnownContents:
        try:
            self._check_shell(target)
            entry = self._journal.read(*target.key)
        except exceptions.DeviceError as error:
            return region_contents.KnownContents(fault=str(error))
        if entry is None:
            return region_contents.KnownContents()
        if target.key in self._live:
            return region_contents.KnownContents(is_changing=True)
        unclean = entry.unclean(target.blank)
        if entry.contents is None:
            return entry.contents_after_failure(unclean)
        is_same_boot = entry.boot_id == self._journal.boot_id
        try:
            said = ask(target)
        except exceptions.DeviceError as error:
            # A region that lost its contents in a boot may say nothing.
            if is_same_boot:
                return region_contents.KnownContents(fault=str(error))
            return region_contents.KnownContents(unclean=unclean)
        return entry.contents_after_success(
            said, is_same_boot, target.tells_contents, unclean
        )

    def _check_shell(self, target: _Target) -> None:
        """:raises DeviceError: it is a region, and the card's shell is bad."""
        if not target.region.is_shell:
            for shell in self._targets_of(target.device, is_shell=True):
                fault = self.known(shell).fault
                if fault is not None:
                    raise exceptions.DeviceError(f'the shell: {fault}')

    def _said_before_held(self, target: _Target) -> str:
        """The answer of a device, or its last one before a guest got it.

        Many devices cannot be asked while a guest has them. They are asked
        again before the next guest starts.

        :raises DeviceError: it does not answer, and no guest has it.
        """
        try:
            return target.loaded()
        except exceptions.DeviceError:
            entry = self.last(target)
            held = self._held.handles()
            if (
                entry is not None
                and entry.loaded is not None
                and entry.boot_id == self._journal.boot_id
                and any(handle.uuid in held for handle in target.handles)
            ):
                return entry.loaded
            raise

    def is_journaled(self, target: _Target) -> bool:
        """Whether we know of any programming of a region.

        It is also true if the card's shell was ever loaded: that may be going
        on, or may have failed.
        """
        try:
            return any(
                self._journal.read(*each.key)
                for each in (target, *self._targets_of(target.device, True))
            )
        except exceptions.DeviceError:
            return True

    def last(self, target: _Target) -> region_entry.RegionEntry | None:
        """The last programming of a region, None if none is known."""
        try:
            return self._journal.read(*target.key)
        except exceptions.DeviceError:
            return None

    def serve(
        self,
        target: _Target,
        instance_uuid: str | None,
        bitstream: fpga_bitstream.Bitstream | None = None,
    ) -> programmable.Contents | None:
        """Journal that an instance is given a region with its contents.

        :param instance_uuid: None if no one is given it
        :param bitstream: the one that the region holds, whose image may have
            other properties by now
        :returns: the contents, None if they are not known
        :raises DeviceError: the journal is damaged, or the disk refused.
        """
        entry = self._journal.read(*target.key)
        if entry is None:
            return None
        given = entry.give_to(instance_uuid, bitstream)
        if given != entry:
            self._journal.write(given)
        if given.contents != entry.contents:
            self._changed()
        return given.contents

    def program(
        self,
        target: _Target,
        record: programming_record.Record,
        bitstream: fpga_bitstream.Bitstream,
        path: pathlib.Path,
        sha256: str,
        deadline: float,
        check_free: Callable[[], None],
    ) -> programmable.Contents:
        """Program a region that no one uses, and read it back.

        :param record: of the programming, which begins now
        :param path: the file with the bitstream's bytes, verified by the hash
        :param deadline: of ``time.monotonic()``
        :param check_free: raises if somebody uses the region; it is called
            before and after the intent is journaled
        :raises BitstreamUnusable: it failed with an image that is not the
            operator's. The region has to be programmed with another one.
        :raises DeviceError: it failed. The region is bad, unless it was not
            touched because no time was left, or the journal failed.
        """
        region_target.left_s(deadline)
        self._check_shell(target)
        check_free()
        old, said = self.known(target).contents, target.loaded_if_any()
        self._live.add(target.key)
        try:
            begun = self._journal.begin(
                target.device.name, record, bitstream, sha256, said, check_free
            )
            if target.region.is_shell:
                # The card's regions lose their contents with the old shell.
                for region in target.device.regions:
                    self._journal.forget(target.device.name, region.name)
            loaded = target.program(path, deadline)
            begun.check_loaded(old, target.tells_contents, bitstream, loaded)
            self._journal.end(begun, None, loaded)
        except exceptions.DeviceError as error:
            raise self._failed(target, record, error) from error
        finally:
            self._live.discard(target.key)
            self._changed()
        return begun.contents_with(loaded)

    def _failed(
        self,
        target: _Target,
        record: programming_record.Record,
        error: exceptions.DeviceError,
    ) -> exceptions.AcceleratorError:
        """Journal that the region is bad, if it was touched.

        :returns: the fault to raise
        :raises DeviceError: the disk refused, or the journal is damaged.
        """
        bitstream_id = record.bitstream_id
        failure = f'{target} is not programmed with {bitstream_id}: {error}'
        begun = self._journal.read(*target.key)
        if begun is None or begun.record != record:
            return exceptions.DeviceError(failure)
        self._journal.end(begun, str(error))
        LOG.error(failure)
        if begun.owner is None or target.region.is_shell:
            return exceptions.DeviceError(failure)
        return exceptions.BitstreamUnusable(
            failure,
            bitstream_id,
            public=(
                'the FPGA refused it. Upload one that was built for this card '
                'and shell, or ask for another'
            ),
        )

    def recover(self) -> list[programming_record.Record]:
        """See :meth:`.region_journal.RegionJournal.recover`."""
        return self._journal.recover(
            {
                target.key: target
                for is_shell in (False, True)
                for target in self.targets(is_shell)
            }
        )
