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

"""The FPGA regions of this host: what they hold, and putting it there.

What a region holds is never taken for granted: the journal says what was
programmed, and the device is asked whether that is still so. A region whose
programming failed or was cut short is bad until one succeeds.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import datetime
import pathlib
import time

from oslo_log import log as logging
from oslo_utils import timeutils

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model import device as device_model
from nova_accel.model import programming
from nova_accel.model import region as region_model
from nova_accel.model import region_contents
from nova_accel.virt import region_journal
from nova_accel.virt import told_types

LOG = logging.getLogger(__name__)

_Step = region_journal.Step

#: Instances that are remembered; a region has far fewer accelerators.
_MAX_SERVED = 64

_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


def boot_id() -> str:
    """The kernel's name of this boot of the host.

    See ``Documentation/admin-guide/sysctl/kernel.rst``.
    """
    return _BOOT_ID.read_text(encoding='ascii').strip()


@dataclasses.dataclass(frozen=True)
class Target:
    """A region or the shell of a card, and who can program it."""

    device: device_model.Device
    region: region_model.Region
    driver: base.Driver

    @property
    def deployables(self) -> Iterator[device_model.Deployable]:
        """All that is handed out of it."""
        return (deployable for deployable in self.device.deployables
                if self.region.is_shell
                or deployable.region == self.region.name)

    @property
    def tells_contents(self) -> bool:
        """Whether what it says is another text for each bitstream."""
        return (self.driver.tells_contents or self.region.is_shell
                or self.region.contents_attribute is not None)

    def __str__(self) -> str:
        return f'{self.region.name} of {self.device.address}'


class Regions:
    """The regions of one host.

    :param drivers: name -> device driver
    :param boot: see :func:`boot_id`
    :param held: the uuids of the attach handles that guests may have
    """

    def __init__(self, journal: region_journal.RegionJournal,
                 types: told_types.ToldTypes,
                 drivers: Mapping[str, base.Driver], boot: str,
                 held: Callable[[], Collection[str]]) -> None:
        self._journal = journal
        self._types = types
        self._drivers = drivers
        self._boot_id = boot
        self._held = held
        self._devices: tuple[device_model.Device, ...] = ()
        # Those that a thread is programming.
        self._live: set[tuple[str, str]] = set()

    def overlaid(self, devices: Iterable[device_model.Device],
                 ) -> tuple[device_model.Device, ...]:
        """What is known of their regions, put into devices.

        :param devices: as they are found; those of :meth:`targets` from now
            on
        """
        self._devices = tuple(
            region_contents.remembered(device, self._types.of(device.name))
            for device in devices)
        self._types.keep(self._devices)
        return tuple(map(self._overlaid, self._devices))

    def _overlaid(self, device: device_model.Device) -> device_model.Device:
        found = region_contents.overlaid(device, {
            region.name: self._known(
                self._target(device, region), self._said_before_held)
            for region in device.regions})
        return found if device.shell is None else region_contents.with_shell(
            found, self.known(self._target(device, device.shell)))

    def targets(self) -> Iterator[Target]:
        """All regions that there are."""
        return (self._target(device, region) for device in self._devices
                for region in device.regions)

    def shells(self) -> Iterator[Target]:
        """Of the cards that can get another one."""
        return (self._target(device, device.shell) for device in self._devices
                if device.shell is not None)

    def _target(self, device: device_model.Device,
                region: region_model.Region) -> Target:
        return Target(device, region, self._drivers[device.driver])

    def entry(self, target: Target) -> region_journal.Entry | None:
        """What the journal has of a region.

        :raises DeviceError: it is damaged.
        """
        return self._journal.read(target.device.name, target.region.name)

    def known(self, target: Target) -> region_contents.Known:
        """What a region is known to hold, as its device has it now."""
        return self._known(target, _said)

    def _known(self, target: Target,
               ask: Callable[[Target], str]) -> region_contents.Known:
        try:
            self._check_shell(target)
            entry = self.entry(target)
            if entry is None or (entry.device, entry.region) in self._live:
                return region_contents.Known()
            if entry.contents is None:
                raise exceptions.DeviceError(
                    f'not programmed with {entry.record.bitstream_id}: '
                    f'{entry.record.failure or "it was cut short"}')
        except exceptions.DeviceError as error:
            return region_contents.Known(fault=str(error))
        is_same_boot = entry.boot_id == self._boot_id
        try:
            said = ask(target)
        except exceptions.DeviceError as error:
            # One that has lost it with the host's boot may say nothing.
            return region_contents.Known(
                fault=str(error) if is_same_boot else None)
        if said == entry.loaded and (
                is_same_boot or target.tells_contents):
            return region_contents.Known(entry.contents)
        if not is_same_boot:
            # It has lost it when the host was booted.
            return region_contents.Known()
        return region_contents.Known(fault=(
            f'it was programmed by others: it says {said!r}, and said '
            f'{entry.loaded!r} when it was programmed with '
            f'{entry.record.bitstream_id}'))

    def _check_shell(self, target: Target) -> None:
        """:raises DeviceError: it is a region, and its card's shell is bad."""
        shell = target.device.shell
        if shell is not None and not target.region.is_shell:
            fault = self.known(self._target(target.device, shell)).fault
            if fault is not None:
                raise exceptions.DeviceError(f'the shell: {fault}')

    def _said_before_held(self, target: Target) -> str:
        """What a device says, or did before a guest got it.

        Many cannot be asked while a guest has them. Before the next guest
        starts they are.

        :raises DeviceError: it does not say, and no guest has it.
        """
        try:
            return _said(target)
        except exceptions.DeviceError:
            entry = self.entry(target)
            held = self._held()
            if (entry is None or entry.loaded is None
                    or entry.boot_id != self._boot_id
                    or not any(handle.uuid in held
                               for deployable in target.deployables
                               for handle in deployable.handles)):
                raise
            return entry.loaded

    def is_journaled(self, target: Target) -> bool:
        """Whether anything was ever programmed there, as far as we know.

        A shell is: it may be loaded just now, or has failed.
        """
        shell = target.device.shell
        try:
            return self.entry(target) is not None or (
                shell is not None
                and self.entry(self._target(target.device, shell)) is not None)
        except exceptions.DeviceError:
            return True

    def served(self, target: Target, instance_uuid: str | None) -> str | None:
        """The bitstream that an instance was given with a region, if any."""
        with contextlib.suppress(exceptions.DeviceError):
            entry = self.entry(target)
            if (entry is not None and entry.step is _Step.PROGRAMMED
                    and instance_uuid in entry.served):
                return entry.record.bitstream_id
        return None

    def serve(self, target: Target, instance_uuid: str) -> None:
        """Journal that an instance is given what a region holds.

        :raises DeviceError: the journal is damaged, or the disk refused.
        """
        entry = self.entry(target)
        if entry is not None and instance_uuid not in entry.served:
            self._journal.write(dataclasses.replace(entry, served=(
                *entry.served[1 - _MAX_SERVED:], instance_uuid)))

    def program(self, target: Target, record: programming.Record,
                function_uuids: tuple[str, ...], bitstream: pathlib.Path,
                sha256: str, deadline: float,
                shell_id: str | None = None) -> region_model.Contents:
        """Program a region that nobody uses, and read it back.

        :param record: as the programming begins
        :param shell_id: what a shell has to say of itself afterwards
        :param bitstream: verified, with that hash
        :param deadline: of ``time.monotonic()``
        :raises DeviceError: it failed. The region is bad, unless it has not
            been touched because there is no time, or no journal.
        """
        _left_s(deadline)
        self._check_shell(target)
        before = self.known(target).contents
        said = _said_if_any(target)
        begun = region_journal.Entry(
            target.device.name, _Step.PROGRAMMING, record, sha256,
            function_uuids, self._boot_id, said)
        live = target.device.name, target.region.name
        self._live.add(live)
        try:
            self._journal.write(begun)
            if target.region.is_shell:
                # Whatever they hold is not there any more.
                for region in target.device.regions:
                    self._journal.forget(target.device.name, region.name)
            _try(target, bitstream, deadline)
            loaded = _said(target)
            if shell_id not in (None, loaded):
                raise exceptions.DeviceError(
                    f'it is {loaded}, not {shell_id}')
            if (target.tells_contents and loaded == said
                    and before is not None and before.sha256 != sha256):
                raise exceptions.DeviceError(
                    f'it says {loaded!r} as before, when it held '
                    f'{before.bitstream_id}')
            self._end(begun, None, loaded)
        except exceptions.DeviceError as error:
            if self.entry(target) == begun:
                self._end(begun, str(error))
            raise exceptions.DeviceError(
                f'{target} is not programmed with {record.bitstream_id}: '
                f'{error}') from error
        finally:
            self._live.discard(live)
        return region_model.Contents(
            record.bitstream_id, sha256, loaded, function_uuids,
            target.region.is_shell)

    def recover(self) -> list[programming.Record]:
        """End what a nova-compute that died had begun, well or badly.

        Nothing is programmed. Only a device that says of each bitstream
        another thing shows that it was done, and not after a boot.

        :returns: the last programming of each region, for the API may not
            have been told of it
        """
        targets = {(target.device.name, target.region.name): target
                   for target in (*self.targets(), *self.shells())}
        records = []
        for entry in self._journal.entries():
            if entry.step is not _Step.PROGRAMMING:
                records.append(entry.record)
                continue
            target = targets.get((entry.device, entry.region))
            said = _said_if_any(target) if target else None
            is_done = (
                target is not None and target.tells_contents
                and said not in (None, entry.loaded)
                and entry.boot_id == self._boot_id)
            fault = None if is_done else (
                'nova-compute or its host died while it was programmed')
            LOG.warning('%s of %s was being programmed with %s when '
                        'nova-compute died: it %s', entry.region,
                        entry.device, entry.record.bitstream_id,
                        'is done' if is_done else 'is bad')
            try:
                records.append(self._end(entry, fault, said))
            except exceptions.DeviceError as error:
                LOG.error('%s of %s stays bad: %s', entry.region,
                          entry.device, error)
        return records

    def _end(self, entry: region_journal.Entry, fault: str | None,
             loaded: str | None = None) -> programming.Record:
        """:raises DeviceError: the disk refused."""
        record = ended(entry.record, fault)
        asker = record.asker.instance_uuid
        self._journal.write(dataclasses.replace(
            entry, record=record, loaded=loaded,
            step=_Step.BAD if fault is not None else _Step.PROGRAMMED,
            served=() if asker is None else (asker,)))
        return record


def ended(record: programming.Record,
          failure: str | None) -> programming.Record:
    """The record of a programming that has ended now."""
    return dataclasses.replace(record, finished_at=now(), failure=failure)


def now() -> datetime.datetime:
    """With its time zone, UTC."""
    return timeutils.utcnow(with_timezone=True)


def _try(target: Target, bitstream: pathlib.Path, deadline: float) -> None:
    """:raises DeviceError: it failed, also the second time if it has one."""
    try:
        return _program(target, bitstream, deadline)
    except exceptions.DeviceError as error:
        if (not target.driver.repeats_programming or target.region.is_shell
                or deadline <= time.monotonic()):
            raise
        LOG.warning('%s is programmed once more: %s', target, error)
    _program(target, bitstream, deadline)


def _program(target: Target, bitstream: pathlib.Path,
             deadline: float) -> None:
    left_s = _left_s(deadline)
    with _plugins_faults(target):
        if target.region.is_shell:
            target.driver.load_shell(target.device, bitstream, left_s)
        else:
            target.driver.program(
                target.device, target.region, bitstream, left_s)


def _left_s(deadline: float) -> float:
    """:raises DeviceError: there is nothing left."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise exceptions.DeviceError('there is no time left for it')
    return left_s


def _said(target: Target) -> str:
    """:raises DeviceError: it does not say, or is in an error."""
    with _plugins_faults(target):
        return (target.driver.loaded_shell(target.device)
                if target.region.is_shell
                else target.driver.loaded(target.device, target.region))


def _said_if_any(target: Target) -> str | None:
    try:
        return _said(target)
    except exceptions.DeviceError as error:
        LOG.info('%s does not say what it holds: %s', target, error)
        return None


@contextlib.contextmanager
def _plugins_faults(target: Target) -> Iterator[None]:
    try:
        yield
    except exceptions.DeviceError:
        raise
    except Exception as error:
        LOG.exception('Driver %s failed', target.device.driver)
        raise exceptions.DeviceError(
            f'driver {target.device.driver} failed: {error!r}') from error
