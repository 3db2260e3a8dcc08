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

A driver is a few lines. It says what a device is and what can be handed out of
it, and does the special steps of its kind. The core decides whether the device
may be used, where it is published and who gets it.
"""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib

from nova_accel import exceptions
from nova_accel.drivers import device_cleaning
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable


class Driver(abc.ABC):
    """All devices of one kind on one host.

    Its methods are called from several threads at once. It keeps no state that
    it could not find again, because nova-compute may be killed at any time.

    :cvar kind: the one type of all its devices, None if they have several; a
        line with another type, or of a device that the catalogue gives another
        type, stops nova-compute. GPU and VGPU count as one.
    :cvar line_keys: which of :data:`device_spec_keys.OF_SOME_DRIVERS` it
        reads; a line with another one of them is refused
    :cvar cleaning_methods: the allowed values of the key ``clean`` of a line;
        for ``program`` the core calls :meth:`program`
    :cvar repeats_programming: whether a failed programming may be repeated
        once
    :cvar programs_under_guest: whether a region may be programmed while a
        guest has it
    :cvar tells_contents: whether :meth:`loaded` returns a different text for
        each bitstream; if not, the contents of a region are known only until
        the host reboots
    :param node_devices: libvirt's node devices, for special steps
    :param sysfs: the host's sysfs, for facts that libvirt does not have
    :param node_uuid: the uuid of the compute node; the uuids of attach handles
        are derived from it, see :func:`nova_accel.model.naming.derived_uuid`
    """

    kind: str | None = None
    line_keys: frozenset[str] = frozenset()
    cleaning_methods: frozenset[str] = frozenset({'none', 'reset', 'command'})
    repeats_programming: bool = False
    programs_under_guest: bool = False
    tells_contents: bool = False

    def __init__(
        self,
        node_devices: libvirt_devices.NodeDevices,
        sysfs: sysfs_tree.Sysfs,
        node_uuid: str,
    ) -> None:
        self._node_devices = node_devices
        self._sysfs = sysfs
        self._node_uuid = node_uuid

    @abc.abstractmethod
    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        """Describe a PCI function that the operator gave to this driver.

        It only collects facts and changes nothing. They are in the arguments;
        facts that libvirt does not have may be read from sysfs.
        :class:`nova_accel.drivers.facts.Facts` has the facts that all drivers
        state in the same way. The addresses in the handles, of the function
        itself or of its virtual functions, go to no other device.

        :param spec: the line of ``device_spec`` that applies to the function
        :param host: all devices of the host, seen at the same moment
        :returns: None if the line wants only its virtual functions handed out,
            each as a device of its own
        :raises DeviceError: the function is not offered; the text tells the
            operator why.
        :raises InvalidName: no valid name in Placement can be made for it.
        """

    def plug(  # noqa: B027
        self, handle: attach_handle.AttachHandle
    ) -> None:
        """Prepare a handle to go into a guest; idempotent.

        It is called before every start of the guest, including after a reboot
        of the host.

        :raises DeviceError: the device refused.
        """

    def check_migratable(self, handle: attach_handle.AttachHandle) -> None:
        """Check that the handle's state can be migrated live with a guest.

        :raises DeviceError: it cannot be; the text says why.
        """
        raise exceptions.DeviceError(
            f'{handle.address} cannot be migrated live',
            public='an accelerator of the server cannot be migrated live',
        )

    def migration_facts(
        self, handles: Sequence[attach_handle.AttachHandle]
    ) -> tuple[Mapping[str, str], ...]:
        """The facts that both hosts of a live migration must share.

        The source asks while a guest has the handles, and the destination
        before :meth:`plug`. Only there they have the ``vgpu_params`` of their
        line, which the device is to get. Nova waits meanwhile, so a driver
        that has to run a tool runs it once for all of them.

        :param handles: all of the guest that are the driver's; at least one
        :returns: for each handle, in their order: name -> value, both for
            people to read
        :raises DeviceError: one cannot be learnt; the text says why.
        """
        return tuple({} for _handle in handles)

    def unplug(  # noqa: B027
        self, handle: attach_handle.AttachHandle
    ) -> None:
        """Undo :meth:`plug` when no guest has the handle; idempotent.

        :raises DeviceError: the device refused; the caller tries again later.
        """

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        """The device's own word on what a region holds.

        :raises DeviceError: it does not say, or has an error, so that no guest
            may get the region.
        """
        raise exceptions.DeviceError(
            f'{device.address} does not say what {region.name} holds'
        )

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        """Program a region that no guest has, and wait until it is done.

        The bitstream is verified and fits. The caller calls :meth:`loaded`
        before and after.

        :param bitstream: a file that no one else changes, readable by root
            and by nova-compute
        :param timeout_s: the most seconds that it may take
        :raises DeviceError: it failed, or took too long; the contents of the
            region are unknown.
        """
        raise exceptions.DeviceError(
            f'{device.address} is not programmed: its driver cannot do it'
        )

    def loaded_shell(self, device: hardware.Device) -> str:
        """The id of the shell that a card has, or of its contents without one.

        :raises DeviceError: it does not say, or is in an error.
        """
        raise exceptions.DeviceError(
            f'{device.address} does not say what its shell is'
        )

    def load_shell(
        self, device: hardware.Device, shell: pathlib.Path, timeout_s: float
    ) -> None:
        """Load another static part into a card that no one uses.

        It is called for devices with a ``shell`` only, and like
        :meth:`program`. The caller calls :meth:`loaded_shell` before and
        after.

        :raises DeviceError: it failed, or took too long; the contents of the
            card are unknown.
        """
        raise exceptions.DeviceError(
            f'{device.address} gets no shell: its driver cannot load one'
        )

    def check_cleaning(self, spec: device_spec.DeviceSpec) -> None:
        """Check that this driver can clean as the operator's line demands.

        :raises DeviceError: it cannot; the text names the key.
        """
        if spec.clean is not None and spec.clean not in self.cleaning_methods:
            raise exceptions.DeviceError(
                f'"clean": "{spec.clean}" does not work with the driver '
                f'{spec.driver}, but '
                f'{", ".join(sorted(self.cleaning_methods))}'
            )

    def clean(self, handle: attach_handle.AttachHandle) -> None:
        """Remove what a guest left in a handle, and verify that it is gone.

        It is called for deployables with ``is_cleaned``, after :meth:`unplug`
        and before anyone else gets the handle. It is idempotent, and may take
        hours.

        :param handle: the handle from the latest discovery, with its
            ``cleaning``
        :raises DeviceError: it is not clean; no one gets it.
        """
        method, *command = handle.cleaning or ('none',)
        if method == 'reset':
            for function in handle.functions:
                device_cleaning.reset(self._sysfs, function)
        elif method == 'command':
            for function in handle.functions:
                device_cleaning.run(command, function)
        elif method != 'none':
            raise exceptions.DeviceError(
                f'{handle.address} cannot be cleaned by {method!r}'
            )
