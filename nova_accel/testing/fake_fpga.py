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


"""A device driver for simulated FPGA cards.

It cannot drive real cards, so no entry point names it. A test installs it
with :class:`Installed`.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import enum
import hashlib
import pathlib
import threading
from typing import ClassVar
import uuid

import fixtures

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.testing import installed_driver

_REGION_TYPES = uuid.UUID('6b0b1f0e-5c0e-4d5b-9c8e-2f4b7a1d9e30')


def region_type_uuid(product_id: str, index: int) -> str:
    """The type of a card's N-th region, the same for all cards of a kind."""
    return str(uuid.uuid5(_REGION_TYPES, f'{product_id}/{index}'))


class FakeFpgaDriver(base.Driver):
    """A driver of cards whose virtual functions are their FPGA regions.

    Each region is a deployable of its own, with its own region trait.

    :cvar cleaning: of the regions; None if they are not cleaned
    :cvar programming: of the regions; None if they cannot be programmed
    :cvar faults: PCI address of a card -> why it cannot be used
    """

    cleaning_methods = base.Driver.cleaning_methods | {'program'}
    repeats_programming = True
    programs_under_guest = True
    tells_contents = True

    programming: ClassVar['Programming | None'] = None
    cleaning: ClassVar['Cleaning | None'] = None
    faults: ClassVar[dict[str, str]] = {}

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device:
        if not function.virtual_functions:
            raise exceptions.DeviceError(
                'it has no virtual functions, which are its regions'
            )
        known = facts.of(function, spec)
        deployables, regions = [], []
        for index, address in enumerate(function.virtual_functions):
            handle = attach_handle.AttachHandle(
                naming.derived_uuid(
                    self._node_uuid, function.name, f'region{index}'
                ),
                address,
            )
            type_uuid = region_type_uuid(function.product_id, index)
            deployables.append(
                dataclasses.replace(
                    known.deployable(
                        f'region{index}',
                        [handle],
                        naming.region_trait(
                            known.type, known.vendor, type_uuid
                        ),
                    ),
                    region=f'region{index}',
                )
            )
            regions.append(programmable.Region(f'region{index}', type_uuid))
        return dataclasses.replace(
            known.device(
                deployable
                if self.cleaning is None
                else dataclasses.replace(deployable, is_cleaned=True)
                for deployable in deployables
            ),
            fault=self.faults.get(str(function.address)),
            regions=tuple(regions),
            shell=programmable.Region(programmable.SHELL, is_shell=True),
        )

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        if self.programming is None:
            return super().loaded(device, region)
        return self.programming.loaded(device, region)

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        if self.programming is None:
            super().program(device, region, bitstream, timeout_s)
        else:
            self.programming.program(device, region, bitstream, timeout_s)

    def loaded_shell(self, device: hardware.Device) -> str:
        if self.programming is None:
            return super().loaded_shell(device)
        return self.programming.loaded_shell(device)

    def load_shell(
        self, device: hardware.Device, shell: pathlib.Path, timeout_s: float
    ) -> None:
        if self.programming is None:
            super().load_shell(device, shell, timeout_s)
        else:
            self.programming.load_shell(device, shell, timeout_s)

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        if self.cleaning is None:
            super().clean(handle)
        else:
            self.cleaning.clean(handle)


class Installed(installed_driver.InstalledDriver):
    """Installs :class:`FakeFpgaDriver` under the name ``fake``."""

    def __init__(self) -> None:
        super().__init__('fake', f'{__name__}:{FakeFpgaDriver.__name__}')


class Cleaning(fixtures.Fixture):
    """Has the fake driver's regions cleaned after each guest.

    :ivar cleaned: the uuids of the attach handles that were cleaned, in that
        order
    :ivar refusal: if it is set, every cleaning fails for this reason
    :ivar may_end: cleaning goes on until it is set, for five minutes at most
    """

    def _setUp(self) -> None:
        self.cleaned: list[str] = []
        self.refusal: str | None = None
        self.may_end = threading.Event()
        self.may_end.set()
        # No thread may be left that waits.
        self.addCleanup(self.may_end.set)
        self.useFixture(
            fixtures.MonkeyPatch(f'{__name__}.FakeFpgaDriver.cleaning', self)
        )

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        """:raises DeviceError: it may not end, or is refused."""
        if not self.may_end.wait(300):
            raise exceptions.DeviceError('it was not allowed to end')
        if self.refusal is not None:
            raise exceptions.DeviceError(self.refusal)
        self.cleaned.append(handle.uuid)


class Fault(enum.Enum):
    """A fault of a programming."""

    #: It is refused at once; the region keeps what it held.
    FAILS = 'fails'
    #: It goes on until the timeout.
    HANGS = 'hangs'
    #: It reports success, but the region holds something else.
    LIES = 'lies'
    #: The card loses its power while it is programmed.
    LOSES_POWER = 'loses power'


class Programming(fixtures.Fixture):
    """Has the fake driver's regions programmed.

    Files have the contents of the regions. So the contents outlive
    nova-compute, as in a real card. A region that was never programmed holds
    ``nothing``. The bytes of a shell are the id that the card then reports.

    :param directory: of the files; by default it is removed with the fixture
    :ivar duration_s: how long each programming takes
    :ivar faults: of the next programmings, in that order; None is no fault
    :ivar programmed: (PCI address of the card, region, SHA-256 of the
        bitstream) of the programmings that have ended, in that order
    :ivar is_programming: whether a programming goes on
    :ivar may_end: programmings go on until it is set
    """

    def __init__(
        self, directory: pathlib.Path | None = None, duration_s: float = 0
    ) -> None:
        super().__init__()
        self.duration_s = duration_s
        self._given = directory

    def _setUp(self) -> None:
        self._directory = self._given or pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self.faults: list[Fault | None] = []
        self.programmed: list[tuple[str, str, str]] = []
        self.is_programming = False
        self.may_end = threading.Event()
        self.may_end.set()
        self._is_over = threading.Event()
        # No thread may be left that waits.
        self.addCleanup(self.let_end)
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{__name__}.FakeFpgaDriver.programming', self
            )
        )

    def let_end(self) -> None:
        """End the running programming at once, and all later ones."""
        self._is_over.set()
        self.may_end.set()

    def lose_contents(self) -> None:
        """Have all regions hold nothing, as after a boot of the host."""
        for file in self._directory.iterdir():
            file.unlink()

    def loaded(self, card: hardware.Device, part: programmable.Region) -> str:
        """:raises DeviceError: a programming goes on, or has failed."""
        try:
            text = self._file(card, part).read_text()
        except FileNotFoundError:
            return 'nothing'
        if not text:
            raise exceptions.DeviceError(
                f'{part.name} of {card.address} is not programmed to the end'
            )
        return text

    def loaded_shell(self, card: hardware.Device) -> str:
        """:raises DeviceError: loading a shell has failed."""
        return self.loaded(card, programmable.Region(programmable.SHELL))

    def load_shell(
        self, card: hardware.Device, shell: pathlib.Path, timeout_s: float
    ) -> None:
        """:raises DeviceError: it is to fail."""
        part = programmable.Region(programmable.SHELL)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            self._file(card, part).write_text('')
            raise self._refusal(card, part, 'its power is lost')
        for each in card.regions:
            self._file(card, each).unlink(missing_ok=True)
        self._file(card, part).write_text(shell.read_text())

    def program(
        self,
        card: hardware.Device,
        part: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        """:raises DeviceError: it takes too long, or has a fault."""
        fault = self.faults.pop(0) if self.faults else None
        if fault is Fault.FAILS:
            raise self._refusal(card, part, 'it is refused')
        try:
            content = bitstream.read_bytes()
        except OSError as error:
            raise self._refusal(card, part, str(error)) from error
        if fault is Fault.LIES:
            content += b'!'
        digest = hashlib.sha256(content).hexdigest()
        with self._unfinished(card, part, digest):
            if fault is Fault.LOSES_POWER:
                self._is_over.wait(min(self.duration_s / 2, timeout_s))
                raise self._refusal(card, part, 'its power is lost')
            if self.duration_s:
                self._is_over.wait(min(self.duration_s, timeout_s))
            if fault is Fault.HANGS:
                self._is_over.wait(timeout_s)
            if (
                fault is Fault.HANGS
                or self.duration_s > timeout_s
                or not self.may_end.wait(timeout_s)
            ):
                raise self._refusal(
                    card, part, f'not finished after {timeout_s:g} s'
                )
        self.programmed.append((str(card.address), part.name, digest))

    @contextlib.contextmanager
    def _unfinished(
        self, card: hardware.Device, part: programmable.Region, digest: str
    ) -> Iterator[None]:
        """Make a region unusable until the body has ended without an error."""
        file = self._file(card, part)
        file.write_text('')
        self.is_programming = True
        try:
            yield
        finally:
            self.is_programming = False
        new = file.with_suffix('.new')
        new.write_text(digest)
        new.replace(file)

    def _refusal(
        self, card: hardware.Device, part: programmable.Region, reason: str
    ) -> exceptions.DeviceError:
        return exceptions.DeviceError(
            f'{part.name} of {card.address} is not programmed: {reason}'
        )

    def _file(
        self, card: hardware.Device, part: programmable.Region
    ) -> pathlib.Path:
        return self._directory / f'{card.address}-{part.name}'
