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

"""The last answers of the drivers, for the units that instances hold."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Set
import dataclasses
import functools

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import held_units
from nova_accel.virt.publishing import held_answers

LOG = logging.getLogger(__name__)


class LastAnswers:
    """Asks the drivers of one host, and remembers what they said last.

    :param memory: what was said before the start of nova-compute
    """

    def __init__(self, memory: held_answers.HeldAnswers | None = None) -> None:
        self._memory = memory
        self._last: dict[pci_address.PciAddress, held_answers.HeldAnswer] = {
            each.device.address: each
            for each in (() if memory is None else memory.read())
        }

    def forget_others(
        self, functions: Iterable[pci_address.PciAddress]
    ) -> None:
        """Forget the functions that are gone; others may take their places."""
        there = frozenset(functions)
        self._last = {
            address: last
            for address, last in self._last.items()
            if address in there
        }

    def remember(self, held: Set[str]) -> None:
        """Keep what drivers said of held devices for the next start.

        Does not raise.

        :param held: as for :meth:`ask`
        """
        if self._memory is not None:
            self._memory.write(
                tuple(
                    each
                    for _address, each in sorted(self._last.items())
                    if _is_held(each.device, held)
                )
            )

    def line_of(
        self,
        address: pci_address.PciAddress,
        held: Set[str],
        specs: Iterable[device_spec.DeviceSpec],
    ) -> device_spec.DeviceSpec | None:
        """The last line of a function, if an instance holds a unit of it.

        :param specs: the lines that there are
        """
        last = self._last.get(address)
        if last is None or not _is_held(last.device, held):
            return None
        return next((each for each in specs if each.text == last.line), None)

    def ask(
        self,
        driver: base.Driver,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
        held: Set[str],
        find_fault: Callable[[pci_address.PciAddress], str | None],
    ) -> hardware.Device | None:
        """The answer of a driver, with all that instances hold of the device.

        A driver may refuse a function that does not answer. It then stays as
        it was, and the caller publishes it as faulty.

        :param held: the uuids of the attach handles that instances hold
        :param find_fault: tells why a function does not answer, None if it
            does
        :returns: as :meth:`nova_accel.drivers.base.Driver.discover`
        :raises DeviceError, InvalidName: the driver refuses the function,
            which answers or was not seen before, and no instance holds any of
            it.
        """
        last = self._known(function, spec)
        is_there = functools.partial(_is_there, host)
        try:
            found = driver.discover(function, spec, host)
        except (exceptions.DeviceError, exceptions.InvalidName) as error:
            fault = find_fault(function.address)
            kept = last and held_units.keep(
                last,
                held if fault is None else _with_all_of(last, held),
                is_there,
                str(error),
            )
            if last is None or kept is None:
                if fault is None or isinstance(error, exceptions.PartOfCard):
                    raise
                raise exceptions.DeviceError(
                    f'{fault}. Its driver refuses it: {error}'
                ) from error
            LOG.info(
                '%s stays as it was, because %s: %s',
                function.address,
                fault or 'instances hold units of it',
                error,
            )
            self._last[function.address] = held_answers.HeldAnswer(
                last, spec.text
            )
            return kept
        if found is None:
            return None
        if last is not None:
            found = dataclasses.replace(
                found, subsystem=found.subsystem or last.subsystem
            )
            found = held_units.completed(found, last, held, is_there)
        self._last[function.address] = held_answers.HeldAnswer(
            found, spec.text
        )
        return found

    def _known(
        self, function: pci_function.PciFunction, spec: device_spec.DeviceSpec
    ) -> hardware.Device | None:
        """Forget the last answer, and return it if it is of this device.

        Another line asks for something else.
        """
        last = self._last.pop(function.address, None)
        if last is None:
            return None
        device, line = last
        is_same = (device.vendor_id, device.product_id, line) == (
            function.vendor_id,
            function.product_id,
            spec.text,
        )
        return device if is_same else None


def _is_held(device: hardware.Device, held: Set[str]) -> bool:
    return not held.isdisjoint(handle.uuid for handle in device.handles)


def _with_all_of(device: hardware.Device, held: Set[str]) -> Set[str]:
    return held | {handle.uuid for handle in device.handles}


def _is_there(
    host: libvirt_devices.HostDevices, handle: attach_handle.AttachHandle
) -> bool:
    return all(
        address in host.functions
        for address in (handle.address, *handle.functions)
    )
