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

A reboot of the host removes them. nova-compute creates them again when it
starts, before Nova resumes guests. This needs no journal: the configuration
has the wanted number, sysfs has the present one, and the kernel creates all of
them or none. So an interrupted start is simply repeated.
"""

from collections.abc import Sequence

from oslo_log import log as logging
import tenacity

from nova_accel import exceptions
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.host import whole_card
from nova_accel.model.devices import device_spec

LOG = logging.getLogger(__name__)

_ATTRIBUTE = 'sriov_numvfs'

_NVIDIA = '10de'
# https://docs.nvidia.com/vgpu, "Preparing the Virtual Function for an NVIDIA
# vGPU": only this program may make or remove them.
_NVIDIAS_TOOL = '/usr/lib/nvidia/sriov-manage'


def check(
    function: pci_function.PciFunction, spec: device_spec.DeviceSpec
) -> None:
    """Check that a physical function has virtual ones if its line wants any.

    :raises NotMadeYet: it has none, and can have them.
    :raises DeviceError: it has none, and gets none.
    """
    wanted = _wanted(function, spec)
    if wanted is None or function.virtual_functions:
        return
    if function.vendor_id == _NVIDIA:
        raise exceptions.DeviceError(
            'NVIDIA lets only its own program make the virtual functions of a '
            'GPU: remove "sriov_numvfs" from the line, and have the host run '
            f'{_NVIDIAS_TOOL} -e {function.address} before nova-compute starts'
        )
    most = function.max_virtual_functions
    if wanted > most:
        raise exceptions.DeviceError(
            f'its line asks for {wanted} virtual functions, it can have '
            f'{most or "none"}'
        )
    raise exceptions.NotMadeYet(
        f'its line asks for {wanted} virtual functions, it has none: they are '
        'made when nova-compute starts, which logs why it could not'
    )


def mismatch(
    function: pci_function.PciFunction, spec: device_spec.DeviceSpec
) -> str | None:
    """Why the existing number stays although the line asks for another.

    Guests may have the existing functions, and the kernel can only remove all
    or none.
    """
    wanted, has = _wanted(function, spec), len(function.virtual_functions)
    if wanted is None or has in (0, wanted):
        return None
    return (
        f'its line asks for {wanted} virtual functions, it has {has}: the '
        'number is not changed while there are any. When no guest has '
        f'them, {_removal(function)}, and restart nova-compute'
    )


class VirtualFunctions:
    """Create the virtual functions when nova-compute starts.

    :param within_s: how long libvirt may take to list them, in seconds
    """

    def __init__(
        self,
        node_devices: libvirt_devices.NodeDevices,
        sysfs: sysfs_tree.Sysfs,
        claims: nova_claims.NovaClaims,
        guests: all_guests.AllGuests,
        within_s: float = 30,
    ) -> None:
        self._node_devices = node_devices
        self._sysfs = sysfs
        self._claims = claims
        self._guests = guests
        self._within_s = within_s

    def make(self, specs: Sequence[device_spec.DeviceSpec]) -> None:
        """Create virtual functions where lines ask for them and none exist.

        Cards of many shapes get those that NVIDIA's program makes.

        A failure is logged, and the others are created.

        :raises DeviceError: libvirt does not list its devices, or guests.
        """
        if not any(spec.sriov_numvfs or spec.shapes for spec in specs):
            return
        host = self._node_devices.look()
        in_use = frozenset().union(*self._guests.devices().values())
        for function in sorted(
            host.functions.values(), key=lambda each: each.address
        ):
            spec = device_spec.first_match(specs, function)
            wanted = None if spec is None else _number(function, spec)
            is_in_use = str(function.address) in in_use
            # Discovery refuses and explains the other cases.
            if (
                spec is None
                or not wanted
                # A guest may have a card of many shapes as a whole.
                or (is_in_use and spec.shapes)
                or function.virtual_functions
                or wanted > function.max_virtual_functions
                or self._claims.on_functions([function.address], host)
                is not None
            ):
                continue
            try:
                if is_in_use:
                    raise exceptions.DeviceError('a guest has it')
                if spec.shapes:
                    whole_card.take_back(self._sysfs, function.address)
                else:
                    self._make(function, wanted)
            except exceptions.DeviceError as error:
                LOG.error(
                    '%d virtual functions of %s could not be made: %s%s',
                    wanted,
                    function.address,
                    error,
                    _cure(function),
                )

    def _make(self, function: pci_function.PciFunction, wanted: int) -> None:
        """:raises DeviceError: not all exist afterwards."""
        address = function.address
        there = self._sysfs.read(address, _ATTRIBUTE)
        if there == '0':
            LOG.info('Making %d virtual functions of %s', wanted, address)
            self._sysfs.write(address, _ATTRIBUTE, str(wanted))
            there = self._sysfs.read(address, _ATTRIBUTE)
        if there != str(wanted):
            raise exceptions.DeviceError(
                f'{_ATTRIBUTE} of {address} is {there}'
            )
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
                function.address
            ).virtual_functions
            for address in made:
                self._node_devices.function(address)
        except exceptions.DeviceError:
            return False
        return len(made) == wanted


def _number(
    function: pci_function.PciFunction, spec: device_spec.DeviceSpec
) -> int | None:
    """How many are to be made at the start, None if none are."""
    if function.vendor_id != _NVIDIA:
        return _wanted(function, spec)
    return function.max_virtual_functions if spec.shapes else None


def _cure(function: pci_function.PciFunction) -> str:
    """The step before nova-compute starts again, if one is known.

    A card with DFL answers EINVAL while the host has its ports
    (``dfl_fpga_cdev_config_ports_vf`` of the kernel's ``drivers/fpga/dfl.c``).
    """
    if function.driver == 'dfl-pci':
        return (
            '. The host must release the ports of the card before nova-compute'
            ' starts: fpgaport release /dev/dfl-fme.N PORT'
        )
    return ''


def _removal(function: pci_function.PciFunction) -> str:
    """How the operator removes the virtual functions."""
    if function.vendor_id == _NVIDIA:
        return (
            f'turn MIG mode off (nvidia-smi -i {function.address} -mig 0), '
            'because a card refuses it in that mode, run '
            f'{_NVIDIAS_TOOL} -d {function.address}'
        )
    return f'write 0 to its {_ATTRIBUTE} in sysfs'


def _wanted(
    function: pci_function.PciFunction, spec: device_spec.DeviceSpec
) -> int | None:
    """The wanted number; None for a function that is itself virtual."""
    return None if function.parent_address is not None else spec.sriov_numvfs
