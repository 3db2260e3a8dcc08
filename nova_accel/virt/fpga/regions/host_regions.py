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

The contents of a region are always checked. The journal says what was
programmed, and the device is asked whether that is still so. If a programming
fails or is interrupted, the region is bad until another one succeeds.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import pathlib

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model import fpga_bitstream
from nova_accel.model import hardware
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.model import region_contents
from nova_accel.virt.fpga.regions import known_types
from nova_accel.virt.fpga.regions import programming_attempt
from nova_accel.virt.fpga.regions import region_journal
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.holding import holdings

LOG = logging.getLogger(__name__)

_Step = region_journal.Step
_Target = region_target.Target

#: Instances that are remembered for a region, which has far fewer units.
_MAX_SERVED = 64

_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


def boot_id() -> str:
    """The kernel's name of this boot of the host.

    See ``Documentation/admin-guide/sysctl/kernel.rst``.
    """
    return _BOOT_ID.read_text(encoding='ascii').strip()


class Regions:
    """The regions of one host.

    :param drivers: name -> device driver
    :param boot: see :func:`boot_id`
    """

    def __init__(
        self,
        journal: region_journal.RegionJournal,
        types: known_types.KnownTypes,
        drivers: Mapping[str, base.Driver],
        boot: str,
        held: holdings.Held,
    ) -> None:
        self._journal = journal
        self._types = types
        self._drivers = drivers
        self._boot_id = boot
        self._held = held
        self._devices: tuple[hardware.Device, ...] = ()
        # Device and name of the regions that a thread is programming.
        self._live: set[tuple[str, str]] = set()

    def overlaid(
        self,
        devices: Iterable[hardware.Device],
    ) -> tuple[hardware.Device, ...]:
        """Devices with all that is known of their regions.

        :param devices: as they were found. From now on, :meth:`targets`
            answers for these
        """
        self._devices = tuple(
            region_contents.remembered(device, self._types.of(device.name))
            for device in devices
        )
        self._types.keep(self._devices)
        return tuple(map(self._overlaid, self._devices))

    def _overlaid(self, device: hardware.Device) -> hardware.Device:
        try:
            return self._with_what_is_known(device)
        # One card must not hide the others, whatever its driver says.
        except Exception as error:
            LOG.exception('What %s holds is not known', device.name)
            return dataclasses.replace(
                device, fault=f'what it holds is not known: {error!r}'
            )

    def _with_what_is_known(self, device: hardware.Device) -> hardware.Device:
        found = region_contents.overlaid(
            device,
            {
                region.name: self._known(
                    self._target(device, region), self._said_before_held
                )
                for region in device.regions
            },
        )
        return (
            found
            if device.shell is None
            else region_contents.with_shell(
                found, self.known(self._target(device, device.shell))
            )
        )

    def targets(self) -> Iterator[_Target]:
        """All regions of the host."""
        return (
            self._target(device, region)
            for device in self._devices
            for region in device.regions
        )

    def shells(self) -> Iterator[_Target]:
        """The shells of the cards that can get another shell."""
        return (
            self._target(device, device.shell)
            for device in self._devices
            if device.shell is not None
        )

    def _target(
        self, device: hardware.Device, region: programmable.Region
    ) -> _Target:
        return _Target(device, region, self._drivers[device.driver])

    def entry(self, target: _Target) -> region_journal.Entry | None:
        """The journal's entry of a region.

        :raises DeviceError: the entry is damaged.
        """
        return self._journal.read(target.device.name, target.region.name)

    def known(self, target: _Target) -> region_contents.Known:
        """The known contents of a region, checked with its device now."""
        return self._known(target, _Target.loaded)

    def _known(
        self, target: _Target, ask: Callable[[_Target], str]
    ) -> region_contents.Known:
        try:
            self._check_shell(target)
            entry = self.entry(target)
            if entry is None:
                return region_contents.Known()
            if (entry.device, entry.region) in self._live:
                return region_contents.Known(is_changing=True)
            unclean = _unclean(target, entry)
            if entry.contents is None:
                failure = (
                    f'not programmed with {entry.record.bitstream_id}: '
                    f'{entry.record.failure or "it was cut short"}'
                )
                if unclean is not None and entry.step is _Step.BAD:
                    # That bitstream is at fault; another one may work.
                    return region_contents.Known(
                        unclean=dataclasses.replace(
                            unclean,
                            owner=programmable.UNKNOWN_OWNER,
                            reason=f'{unclean.reason} ({failure})',
                        )
                    )
                raise exceptions.DeviceError(failure)
        except exceptions.DeviceError as error:
            return region_contents.Known(fault=str(error))
        is_same_boot = entry.boot_id == self._boot_id
        try:
            said = ask(target)
        except exceptions.DeviceError as error:
            # A region that lost its contents in a boot may say nothing.
            return (
                region_contents.Known(fault=str(error))
                if is_same_boot
                else region_contents.Known(unclean=unclean)
            )
        if said == entry.loaded and (is_same_boot or target.tells_contents):
            return region_contents.Known(entry.contents, unclean=unclean)
        if not is_same_boot:
            # The region has lost its contents if it was without power when
            # the host was booted. Some regions say so.
            return region_contents.Known(
                unclean=None if target.tells_contents else unclean
            )
        return region_contents.Known(
            fault=(
                f'it was programmed by others: it says {said!r}, and said '
                f'{entry.loaded!r} when it was programmed with '
                f'{entry.record.bitstream_id}'
            )
        )

    def _check_shell(self, target: _Target) -> None:
        """:raises DeviceError: it is a region, and the card's shell is bad."""
        shell = target.device.shell
        if shell is not None and not target.region.is_shell:
            fault = self.known(self._target(target.device, shell)).fault
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
            entry = self.entry(target)
            held = self._held.handles()
            if (
                entry is None
                or entry.loaded is None
                or entry.boot_id != self._boot_id
                or not any(
                    handle.uuid in held
                    for deployable in target.deployables
                    for handle in deployable.handles
                )
            ):
                raise
            return entry.loaded

    def is_journaled(self, target: _Target) -> bool:
        """Whether we know of any programming of a region.

        It is also true if the card's shell was ever loaded: that may be going
        on, or may have failed.
        """
        shell = target.device.shell
        try:
            return self.entry(target) is not None or (
                shell is not None
                and self.entry(self._target(target.device, shell)) is not None
            )
        except exceptions.DeviceError:
            return True

    def served(
        self,
        target: _Target,
        instance_uuid: str | None,
    ) -> programmable.Circuit | None:
        """The circuit with which an instance was given a region, if any."""
        with contextlib.suppress(exceptions.DeviceError):
            entry = self.entry(target)
            if (
                entry is not None
                and entry.step is _Step.PROGRAMMED
                and instance_uuid in entry.served
            ):
                return entry.circuit
        return None

    def operators(self, target: _Target) -> programmable.Circuit | None:
        """The operator's last circuit that a region is known to accept."""
        with contextlib.suppress(exceptions.DeviceError):
            entry = self.entry(target)
            return None if entry is None else entry.operators
        return None

    def serve(self, target: _Target, instance_uuid: str) -> None:
        """Journal that an instance is given a region with its contents.

        :raises DeviceError: the journal is damaged, or the disk refused.
        """
        entry = self.entry(target)
        if entry is not None and instance_uuid not in entry.served:
            self._journal.write(
                dataclasses.replace(
                    entry,
                    served=(*entry.served[1 - _MAX_SERVED :], instance_uuid),
                )
            )

    def restate(
        self,
        target: _Target,
        bitstream: fpga_bitstream.Bitstream,
    ) -> programmable.Contents | None:
        """Journal the present properties of the image that a region holds.

        :raises DeviceError: the journal is damaged, or the disk refused.
        """
        entry = self.entry(target)
        if entry is None:
            return None
        restated = dataclasses.replace(
            entry,
            function_uuids=bitstream.function_uuids,
            owner=bitstream.owner,
        )
        if restated != entry:
            self._journal.write(restated)
        return restated.contents

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
        """Program a region that nobody uses, and read it back.

        :param record: of the programming, which begins now
        :param path: the file with the bitstream's bytes, verified by the hash
        :param deadline: of ``time.monotonic()``
        :param check_free: raises if somebody uses the region. It is called
            again after the intent is journaled. A server journals what it has
            before it reads that intent, so one of the two sees the other.
        :raises BitstreamUnusable: it failed with an image that is not the
            operator's. The region has to be programmed with another one.
        :raises DeviceError: it failed. The region is bad, unless it was not
            touched because no time was left, or the journal failed.
        """
        programming_attempt.left_s(deadline)
        self._check_shell(target)
        check_free()
        before = self.known(target).contents
        attempt = programming_attempt.Attempt(
            self._journal,
            target,
            region_journal.Entry(
                target.device.name,
                _Step.PROGRAMMING,
                record,
                sha256,
                bitstream.function_uuids,
                self._boot_id,
                target.loaded_if_any(),
                owner=bitstream.owner,
                fallback=self.operators(target),
            ),
            before,
            bitstream.provides_shell_id,
        )
        live = target.device.name, target.region.name
        self._live.add(live)
        try:
            return attempt.run(path, deadline, check_free)
        finally:
            self._live.discard(live)

    def recover(self) -> list[programming_record.Record]:
        """Decide how the programmings ended during which nova-compute died.

        Nothing is programmed. A programming counts as done only if the device
        says a different text for each bitstream, and says a new one. After a
        boot of the host none counts as done.

        :returns: the last programming of each region, of which the API may
            not know
        """
        return programming_attempt.recover(
            self._journal, (*self.targets(), *self.shells()), self._boot_id
        )


def _unclean(
    target: _Target, entry: region_journal.Entry
) -> region_contents.Unclean | None:
    """The reason why not every project may get what an entry describes."""
    if entry.owner is None or target.region.is_shell:
        return None
    if target.blank is not None or entry.fallback is not None:
        reason = (
            "it may hold a circuit of a project's own; it is programmed "
            'before another project gets it'
        )
    else:
        reason = (
            "it may hold a circuit of a project's own, and other projects get "
            'it only with a bitstream that they ask for: set "clean": '
            '"program" and clean_bitstream, or program it'
        )
    return region_contents.Unclean(entry.owner, reason)
