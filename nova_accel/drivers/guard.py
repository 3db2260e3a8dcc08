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

"""The guard around drivers: it turns a driver's bug into a device's fault.

The callers of a driver handle the contract's errors and nothing else. So any
other error of a driver becomes one of them here, and so does an invalid
answer. The text names the driver, its method and the device.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import pathlib
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.drivers import answers
from nova_accel.drivers import base
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable

LOG = logging.getLogger(__name__)


class Guard(base.Driver):
    """A driver that raises only the errors of the contract.

    A vendor's library may even call ``sys.exit``, or raise GeneratorExit,
    which would end the calling thread of nova-compute. If the driver cannot be
    created, all methods refuse.

    :param name: the name of its entry point
    :param make: imports and creates the driver
    """

    _driver: base.Driver

    def __init__(self, name: str, make: Callable[[], base.Driver]) -> None:
        self._name = name
        # Why there is no driver.
        self._fault: str | None = None
        # (Method, device) -> its last bug, whose traceback is in the log
        # already. Discovery meets the same bug every minute.
        self._bugs: dict[tuple[str, str], str] = {}
        try:
            with self._contract('__init__', 'all devices'):
                self._driver = answers.driver(make())
                self.kind = self._driver.kind
                self.line_keys = self._driver.line_keys
                self.cleaning_methods = self._driver.cleaning_methods
                self.repeats_programming = self._driver.repeats_programming
                self.programs_under_guest = self._driver.programs_under_guest
                self.tells_contents = self._driver.tells_contents
        except exceptions.DeviceError as error:
            self._fault = f'driver {name} cannot be used: {error}'
            LOG.error('The devices of %s', self._fault)

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        with self._contract(
            'discover',
            function.address,
            (exceptions.DeviceError, exceptions.InvalidName),
        ):
            return answers.device(
                self._driver.discover(function, spec, host), function, spec
            )

    def plug(self, handle: attach_handle.AttachHandle) -> None:
        with self._contract('plug', handle.address):
            self._driver.plug(handle)

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        with self._contract('check_migratable', handle.address):
            self._driver.check_migratable(handle)

    def migration_facts(
        self, handles: Sequence[attach_handle.AttachHandle]
    ) -> tuple[Mapping[str, str], ...]:
        with self._contract('migration_facts', handles[0].address):
            return answers.migration_facts(
                self._driver.migration_facts(handles), len(handles)
            )

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        with self._contract('unplug', handle.address):
            self._driver.unplug(handle)

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        with self._contract('loaded', device.address):
            return answers.text(self._driver.loaded(device, region))

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        with self._contract('program', device.address):
            self._driver.program(device, region, bitstream, timeout_s)

    def loaded_shell(self, device: hardware.Device) -> str:
        with self._contract('loaded_shell', device.address):
            return answers.text(self._driver.loaded_shell(device))

    def load_shell(
        self,
        device: hardware.Device,
        shell: pathlib.Path,
        timeout_s: float,
    ) -> None:
        with self._contract('load_shell', device.address):
            self._driver.load_shell(device, shell, timeout_s)

    def check_cleaning(self, spec: device_spec.DeviceSpec) -> None:
        with self._contract('check_cleaning', 'its line'):
            self._driver.check_cleaning(spec)

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        with self._contract('clean', handle.address):
            self._driver.clean(handle)

    @contextlib.contextmanager
    def _contract(
        self,
        method: str,
        device: object,
        errors: tuple[type[exceptions.AcceleratorError], ...] = (
            exceptions.DeviceError,
        ),
    ) -> Iterator[None]:
        """Let only ``errors`` out of the body.

        :raises DeviceError: the body raised another error, or one with a text
            that is too long. Its traceback has no text of the driver's errors.
        """
        if self._fault is not None:
            raise exceptions.DeviceError(self._fault)
        place = method, str(device)
        try:
            yield
        except BaseException as error:
            if _ends_the_caller(error):
                raise
            # A log of it would also have the texts of all errors before it.
            raise self._of_contract(error, errors, place) from None
        else:
            self._bugs.pop(place, None)

    def _of_contract(
        self,
        error: BaseException,
        errors: tuple[type[exceptions.AcceleratorError], ...],
        place: tuple[str, str],
    ) -> exceptions.AcceleratorError:
        """The error to raise for a driver's; a bug is logged."""
        if isinstance(error, errors):
            self._bugs.pop(place, None)
            if _is_short(error):
                return error
            return _error(_said(str, error), error)
        method, device = place
        fault = reason.sanitize(
            f'driver {self._name} failed in {method}() for {device}: '
            f'{_said(repr, error)}'
        )
        found = _error(fault, error)
        if self._bugs.get(place) != fault:
            self._bugs[place] = fault
            LOG.error('The %s', fault, exc_info=found)
        return found


def _ends_the_caller(error: BaseException) -> bool:
    """Whether it is meant for the calling thread, not raised by a driver.

    With eventlet a thread is ended, or its wait, by such an error.
    """
    return isinstance(error, KeyboardInterrupt) or any(
        kind.__module__.partition('.')[0] in ('eventlet', 'greenlet')
        for kind in type(error).__mro__
    )


def _is_short(error: exceptions.AcceleratorError) -> bool:
    """Whether an error can be passed on, with all that comes with it."""
    texts = (_text(str, error), _text(lambda it: it.public, error))
    return not hasattr(error, '__notes__') and all(
        text is not None and text == reason.sanitize(text) for text in texts
    )


def _error(text: str, error: BaseException) -> exceptions.DeviceError:
    """An error in the place of another one."""
    return exceptions.DeviceError(text).with_traceback(error.__traceback__)


def _said(say: Callable[[Any], str], error: BaseException) -> str:
    """The beginning of a text of an error, or its type's name if it has none.

    :param say: makes the text, by the driver's own code
    """
    text = _text(say, error)
    return reason.sanitize(type(error).__name__ if text is None else text)


def _text(say: Callable[[Any], str], error: BaseException) -> str | None:
    try:
        return say(error)
    except BaseException as bug:
        if _ends_the_caller(bug):
            raise
        return None
