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


"""The contract of device drivers, entry points of ``nova_accel.drivers``.

A driver is a few lines: it says what a device is and what can be handed out
of it, and does the one odd step of its kind. Whether the device may be used,
where it is published and who gets it is none of its business.
"""

import abc
import pathlib

from nova_accel import exceptions
from nova_accel.drivers import cleaning
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import pci_function
from nova_accel.host import sysfs as sysfs_module
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import device_spec
from nova_accel.model import region


class Driver(abc.ABC):
    """All devices of one kind on one host.

    Called from several threads at once; keeps no state of its own, because
    nova-compute may be killed at any time.

    :cvar cleaning_methods: what the key ``clean`` of a line may be;
        ``program`` is not this class's to do, but uses :meth:`program`
    :cvar repeats_programming: whether a programming that failed may be tried
        once more
    :cvar programs_under_guest: whether a region may be programmed while a
        guest has it
    :cvar tells_contents: whether what :meth:`loaded` says is another text for
        each bitstream; otherwise what a region holds is known until the host
        reboots
    :param node_devices: for the odd step
    :param sysfs: for what libvirt does not say
    :param node_uuid: the uuid of the compute node, from which the uuids of
        attach handles are derived, see
        :func:`nova_accel.model.naming.derived_uuid`
    """

    cleaning_methods: frozenset[str] = frozenset({
        'none', 'reset', 'command'})
    repeats_programming: bool = False
    programs_under_guest: bool = False
    tells_contents: bool = False

    def __init__(self, node_devices: node_devices_module.NodeDevices,
                 sysfs: sysfs_module.Sysfs, node_uuid: str) -> None:
        self._node_devices = node_devices
        self._sysfs = sysfs
        self._node_uuid = node_uuid

    @abc.abstractmethod
    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices_module.HostDevices,
                 ) -> device.Device | None:
        """Say what a PCI function is that the operator gave to this driver.

        Facts only, nothing is changed. They are in the arguments; what
        libvirt does not say may be read from sysfs.
        :class:`nova_accel.drivers.facts.Facts` has what all drivers say in
        the same way. What the handles are made of (a function's own address,
        those of its virtual functions) is used for nothing else.

        :param spec: the line of ``device_spec`` that rules the function
        :param host: everything else on the host, seen at the same moment
        :returns: None if it is offered by its virtual functions alone, each
            of them a device, which the line has asked for
        :raises DeviceError: it is not offered; the text says why, and is
            what the operator reads.
        :raises InvalidName: it cannot be named in Placement.
        """

    def plug(  # noqa: B027
            self, handle: attach_handle.AttachHandle) -> None:
        """Make a handle ready to go into a guest; idempotent.

        Called before every start of the guest, so after each reboot of the
        host too.

        :raises DeviceError: the device refused.
        """

    def check_migratable(
            self, handle: attach_handle.AttachHandle) -> None:
        """Make sure that a guest can take the handle's state along, live.

        :raises DeviceError: it cannot; the text says why.
        """
        raise exceptions.DeviceError(
            f'{handle.address} cannot be migrated live',
            public='an accelerator of the server cannot be migrated live')

    def unplug(  # noqa: B027
            self, handle: attach_handle.AttachHandle) -> None:
        """Undo :meth:`plug` when no guest has the handle; idempotent.

        :raises DeviceError: the device refused; it is tried again later.
        """

    def loaded(self, device: device.Device, region: region.Region) -> str:
        """What a device says that a region holds.

        :raises DeviceError: it does not say, or is in an error: the region
            holds nothing that a guest may be given.
        """
        raise exceptions.DeviceError(
            f'{device.address} does not say what {region.name} holds')

    def program(self, device: device.Device, region: region.Region,
                bitstream: pathlib.Path, timeout_s: float) -> None:
        """Program a region, which no guest has, and wait until it is done.

        The bitstream is verified and fits. Whoever calls it asks
        :meth:`loaded` before and after.

        :param bitstream: a file that nobody else changes, readable by root
            and by nova-compute
        :param timeout_s: longer than this it must not take
        :raises DeviceError: it failed, or took too long; what the region
            holds is not known.
        """
        raise exceptions.DeviceError(
            f'{device.address} is not programmed: its driver cannot do it')

    def loaded_shell(self, device: device.Device) -> str:
        """The id of the shell that a card has, or of what it has without one.

        :raises DeviceError: it does not say, or is in an error.
        """
        raise exceptions.DeviceError(
            f'{device.address} does not say what its shell is')

    def load_shell(self, device: device.Device, shell: pathlib.Path,
                   timeout_s: float) -> None:
        """Load another static part into a card, of which nobody has anything.

        Of devices that say that they have a ``shell``. As :meth:`program`;
        whoever calls it asks :meth:`loaded_shell` before and after.

        :raises DeviceError: it failed, or took too long; what the card holds
            is not known.
        """
        raise exceptions.DeviceError(
            f'{device.address} gets no shell: its driver cannot load one')

    def check_cleaning(self, spec: device_spec.DeviceSpec) -> None:
        """Make sure that this driver cleans as the operator's line wants it.

        :raises DeviceError: it does not; the text names the key.
        """
        if (spec.clean is not None
                and spec.clean not in self.cleaning_methods):
            raise exceptions.DeviceError(
                f'"clean": "{spec.clean}" is not for {spec.driver}, but '
                f'{", ".join(sorted(self.cleaning_methods))}')

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        """Take away what a guest left in a handle, and make sure of it.

        Only of deployables that say ``is_cleaned``: after :meth:`unplug`,
        before anyone else gets it. Idempotent, and may take hours.

        :param handle: as discovered now, with its ``cleaning``
        :raises DeviceError: it is not clean; nobody gets it.
        """
        method, *command = handle.cleaning or ('none',)
        if method == 'reset':
            for function in handle.functions:
                cleaning.reset(self._sysfs, function)
        elif method == 'command':
            for function in handle.functions:
                cleaning.run(command, function)
        elif method != 'none':
            raise exceptions.DeviceError(
                f'{handle.address} cannot be cleaned by {method!r}')
