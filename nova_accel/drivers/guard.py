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
import contextlib
import pathlib

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import answers
from nova_accel.drivers import base
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import device_spec
from nova_accel.model import hardware
from nova_accel.model import programmable
from nova_accel.model import reason

LOG = logging.getLogger(__name__)


class Guard(base.Driver):
    """A driver that raises only the errors of the contract.

    A vendor's library may even call ``sys.exit``, which would end the calling
    thread of nova-compute. If the driver cannot be created, all methods
    refuse.

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
            that is too long.
        """
        if self._fault is not None:
            raise exceptions.DeviceError(self._fault)
        place = method, str(device)
        try:
            yield
        except errors as error:
            self._bugs.pop(place, None)
            text = reason.told(str(error))
            if text == str(error):
                raise
            raise exceptions.DeviceError(text) from error
        except (Exception, SystemExit) as error:
            fault = reason.told(
                f'driver {self._name} failed in {method}() for {device}: '
                f'{_text(error)}'
            )
            if self._bugs.get(place) != fault:
                self._bugs[place] = fault
                LOG.exception('The %s', fault)
            raise exceptions.DeviceError(fault) from error
        else:
            self._bugs.pop(place, None)


def _text(error: BaseException) -> str:
    """The error's repr, or its type's name if repr fails."""
    try:
        return repr(error)
    except Exception:
        return type(error).__name__
