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

"""The virtual functions that lines of ``device_spec`` ask for.

They are gone after a reboot of the host, and made again when nova-compute
starts, which is before Nova resumes guests. There is no journal of it: what is
wanted stands in the configuration and what is there in sysfs, and the kernel
makes all of them or none, so a start that was cut short is simply repeated.
"""

from collections.abc import Sequence

from oslo_log import log as logging
import tenacity

from nova_accel import exceptions
from nova_accel.host import guests as guests_module
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.host import sysfs as sysfs_module
from nova_accel.model import device_spec

LOG = logging.getLogger(__name__)

_ATTRIBUTE = 'sriov_numvfs'


def check(function: pci_function.PciFunction,
          spec: device_spec.DeviceSpec) -> None:
    """Make sure that a physical function has those that its line asks for.

    :raises DeviceError: it has none.
    """
    wanted = _wanted(function, spec)
    if wanted is None or function.virtual_functions:
        return
    most = function.max_virtual_functions
    if wanted > most:
        raise exceptions.DeviceError(
            f'its line asks for {wanted} virtual functions, it can have '
            f'{most or "none"}')
    raise exceptions.DeviceError(
        f'its line asks for {wanted} virtual functions, it has none: they are '
        'made when nova-compute starts, which logs why it could not')


def mismatch(function: pci_function.PciFunction,
             spec: device_spec.DeviceSpec) -> str | None:
    """Why those that are there stay as they are, if the line asks for more.

    Guests may have them; the kernel only knows all or none.
    """
    wanted, has = _wanted(function, spec), len(function.virtual_functions)
    if wanted is None or has in (0, wanted):
        return None
    return (f'its line asks for {wanted} virtual functions, it has {has}: the '
            'number is not changed while there are any. Without guests that '
            f'have them, write 0 to its {_ATTRIBUTE} in sysfs and restart '
            'nova-compute')


class VirtualFunctions:
    """Makes them, at the start.

    :param within_s: how long libvirt may take to know them
    """

    def __init__(self, node_devices: node_devices_module.NodeDevices,
                 sysfs: sysfs_module.Sysfs,
                 claims: nova_claims.NovaClaims,
                 guests: guests_module.Guests,
                 within_s: float = 30) -> None:
        self._node_devices = node_devices
        self._sysfs = sysfs
        self._claims = claims
        self._guests = guests
        self._within_s = within_s

    def make(self, specs: Sequence[device_spec.DeviceSpec]) -> None:
        """Make what is asked for of physical functions that have none.

        What fails is logged, and the rest is made.

        :raises DeviceError: libvirt does not list its devices, or guests.
        """
        if all(spec.sriov_numvfs is None for spec in specs):
            return
        host = self._node_devices.look()
        in_use = frozenset().union(*self._guests.devices().values())
        for function in sorted(host.functions.values(),
                               key=lambda each: each.address):
            spec = device_spec.first_match(
                specs, function.address, function.vendor_id,
                function.product_id)
            wanted = None if spec is None else _wanted(function, spec)
            # What discovery refuses anyway it also explains.
            if (wanted is None or function.virtual_functions
                    or wanted > function.max_virtual_functions
                    or self._claims.on_functions(
                        [function.address], host) is not None):
                continue
            try:
                if str(function.address) in in_use:
                    raise exceptions.DeviceError('a guest has it')
                self._make(function, wanted)
            except exceptions.DeviceError as error:
                LOG.error('%d virtual functions of %s could not be made: %s',
                          wanted, function.address, error)

    def _make(self, function: pci_function.PciFunction, wanted: int) -> None:
        """:raises DeviceError: not all are there afterwards."""
        address = function.address
        there = self._sysfs.read(address, _ATTRIBUTE)
        if there == '0':
            LOG.info('Making %d virtual functions of %s', wanted, address)
            self._sysfs.write(address, _ATTRIBUTE, str(wanted))
            there = self._sysfs.read(address, _ATTRIBUTE)
        if there != str(wanted):
            raise exceptions.DeviceError(
                f'{_ATTRIBUTE} of {address} is {there}')
        try:
            tenacity.Retrying(
                retry=tenacity.retry_if_not_result(bool),
                wait=tenacity.wait_fixed(0.2),
                stop=tenacity.stop_after_delay(self._within_s),
            )(self._knows, function, wanted)
        except tenacity.RetryError as error:
            raise exceptions.DeviceError(
                f'libvirt does not know them after {self._within_s} s',
            ) from error

    def _knows(self, function: pci_function.PciFunction, wanted: int) -> bool:
        """Whether libvirt has all of them."""
        try:
            made = self._node_devices.function(
                function.address).virtual_functions
            for address in made:
                self._node_devices.function(address)
        except exceptions.DeviceError:
            return False
        return len(made) == wanted


def _wanted(function: pci_function.PciFunction,
            spec: device_spec.DeviceSpec) -> int | None:
    """How many the line asks for: of a virtual function itself none."""
    return None if function.parent_address is not None else spec.sriov_numvfs
