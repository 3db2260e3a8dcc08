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
from nova_accel.model import device_spec
from nova_accel.model import hardware
from nova_accel.model import held_units
from nova_accel.model import pci_address

LOG = logging.getLogger(__name__)


class LastAnswers:
    """Asks the drivers of one host, and remembers what they said last."""

    def __init__(self) -> None:
        self._last: dict[
            pci_address.PciAddress,
            tuple[hardware.Device, device_spec.DeviceSpec],
        ] = {}

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

    def line_of(
        self, address: pci_address.PciAddress, held: Set[str]
    ) -> device_spec.DeviceSpec | None:
        """The last line of a function, if an instance holds a unit of it."""
        device, spec = self._last.get(address, (None, None))
        if device is None or held.isdisjoint(
            handle.uuid for handle in device.handles
        ):
            return None
        return spec

    def ask(
        self,
        driver: base.Driver,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
        held: Set[str],
    ) -> hardware.Device | None:
        """The answer of a driver, with all that instances hold of the device.

        :param held: the uuids of the attach handles that instances hold
        :returns: as :meth:`nova_accel.drivers.base.Driver.discover`
        :raises DeviceError, InvalidName: the driver refuses the function, and
            no instance holds any of it.
        """
        last, _spec = self._last.pop(function.address, (None, None))
        if last is not None and (last.vendor_id, last.product_id) != (
            function.vendor_id,
            function.product_id,
        ):
            last = None
        is_there = functools.partial(_is_there, host)
        try:
            found = driver.discover(function, spec, host)
        except (exceptions.DeviceError, exceptions.InvalidName) as error:
            kept = last and held_units.kept(last, held, is_there, str(error))
            if last is None or kept is None:
                raise
            LOG.info(
                '%s stays as it was, because instances hold units of it: %s',
                function.address,
                error,
            )
            self._last[function.address] = last, spec
            return kept
        if found is None:
            return None
        if last is not None:
            found = dataclasses.replace(
                found, subsystem=found.subsystem or last.subsystem
            )
            found = held_units.completed(found, last, held, is_there)
        self._last[function.address] = found, spec
        return found


def _is_there(
    host: libvirt_devices.HostDevices, handle: attach_handle.AttachHandle
) -> bool:
    return all(
        address in host.functions
        for address in (handle.address, *handle.functions)
    )
