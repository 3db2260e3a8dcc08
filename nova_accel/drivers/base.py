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

from nova_accel import exceptions
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import device_spec


class Driver(abc.ABC):
    """All devices of one kind on one host.

    Called from several threads at once; keeps no state of its own, because
    nova-compute may be killed at any time.

    :param node_devices: for the odd step
    :param node_uuid: the uuid of the compute node, from which the uuids of
        attach handles are derived, see
        :func:`nova_accel.model.naming.derived_uuid`
    """

    def __init__(self, node_devices: node_devices_module.NodeDevices,
                 node_uuid: str) -> None:
        self._node_devices = node_devices
        self._node_uuid = node_uuid

    @abc.abstractmethod
    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices_module.HostDevices) -> device.Device:
        """Say what a PCI function is that the operator gave to this driver.

        Facts only, out of the arguments only: nothing is changed or asked.
        :class:`nova_accel.drivers.facts.Facts` has what all drivers say in
        the same way. What the handles are made of (a function's own address,
        those of its virtual functions) is used for nothing else.

        :param spec: the line of ``device_spec`` that rules the function
        :param host: everything else on the host, seen at the same moment
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
            f'{handle.address} cannot be migrated live')

    def unplug(  # noqa: B027
            self, handle: attach_handle.AttachHandle) -> None:
        """Undo :meth:`plug` when no guest has the handle; idempotent.

        :raises DeviceError: the device refused; it is tried again later.
        """
