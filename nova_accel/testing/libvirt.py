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


"""Nova's fake libvirt, with the mediated devices that it lacks."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import threading
from typing import Any

import fixtures
from lxml import etree
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import host as libvirt_host
from nova.virt.libvirt import utils as libvirt_utils

from nova_accel.testing import fake_sysfs
from nova_accel.testing import libvirt_guest

_FAKE = 'nova.tests.fixtures.libvirt'

_lock = threading.RLock()


class MediatedDevice:
    """A ``virNodeDevice`` whose parent is a fake PCI device."""

    def __init__(
        self,
        connection: fakelibvirt.Connection,
        config: vconfig.LibvirtConfigNodeDevice,
    ) -> None:
        self._connection = connection
        self._parent = config.parent
        self._information = config.mdev_information
        # Since libvirt 7.7 the name contains the parent's address.
        self._name = libvirt_utils.mdev_uuid2name(
            self._information.uuid
        ) + self._parent.removeprefix('pci')
        self._is_persistent = False

    def name(self) -> str:
        return self._name

    def parent(self) -> str:
        return self._parent

    def XMLDesc(self, _flags: int) -> str:
        config = vconfig.LibvirtConfigNodeDevice()
        config.name, config.parent = self._name, self._parent
        config.mdev_information = self._information
        xml: str = config.to_xml()
        return xml

    def setAutostart(self, autostart: bool) -> int:
        """Accept the call; no device here survives a reboot of the host."""
        return 0

    def isPersistent(self) -> bool:
        """Whether libvirt would remember it if it were destroyed."""
        return self._is_persistent

    def define(self) -> None:
        """Have libvirt remember it."""
        self._is_persistent = True

    def undefine(self) -> int:
        """Have libvirt forget it; it exists until it is destroyed."""
        self._is_persistent = False
        return 0

    def start(self) -> None:
        """:raises libvirtError: the uuid exists, or its parent is full."""
        with _lock:
            devices = self._connection.mdev_info.devices
            uuid = self._information.uuid
            if any(
                libvirt_utils.mdev_name2uuid(name) == uuid for name in devices
            ):
                raise libvirt_error(f'mediated device {uuid} exists')
            self._take(1)
            devices[self._name] = self

    def destroy(self) -> int:
        """:raises libvirtError: it is gone, or a running guest has it."""
        with _lock:
            devices = self._connection.mdev_info.devices
            if self._name not in devices:
                raise no_device(self._name)
            for domain in self._connection._running_vms.values():
                if self._information.uuid in (
                    hostdev.get('address_uuid')
                    for hostdev in domain._def['devices']['hostdevs']
                ):
                    raise libvirt_error(
                        f'Unable to destroy {self._name!r}: device in use'
                    )
            del devices[self._name]
            self._take(-1)
        return 0

    def _take(self, count: int) -> None:
        """Take units from the number that the parent can still make."""
        card = self._connection.pci_info.get_device_by_name(self._parent)
        if card is None:
            raise no_device(self._parent)
        xml = etree.fromstring(card.pci_device)
        available = xml.find(
            f".//capability[@type='mdev_types']/type[@id='"
            f"{self._information.type}']/availableInstances"
        )
        if available is None or int(available.text) < count:
            raise libvirt_error(
                f'{self._parent} makes no {self._information.type}: '
                'No space left on device'
            )
        available.text = str(int(available.text) - count)
        card.pci_device = etree.tostring(xml, encoding='unicode')


def libvirt_error(
    text: str, code: int = fakelibvirt.VIR_ERR_INTERNAL_ERROR
) -> Exception:
    """A ``libvirtError`` of the node device driver."""
    result: Exception = fakelibvirt.make_libvirtError(
        fakelibvirt.libvirtError,
        text,
        error_code=code,
        error_domain=fakelibvirt.VIR_FROM_NODEDEV,
    )
    return result


def no_device(name: str) -> Exception:
    """The ``libvirtError`` about a node device that is not there."""
    return libvirt_error(
        f'no node device with matching name {name!r}',
        fakelibvirt.VIR_ERR_NO_NODE_DEVICE,
    )


def _parse(xml: str) -> vconfig.LibvirtConfigNodeDevice:
    config = vconfig.LibvirtConfigNodeDevice()
    config.parse_str(xml)
    return config


def _create(
    connection: fakelibvirt.Connection, xml: str, flags: int
) -> MediatedDevice:
    device = MediatedDevice(connection, _parse(xml))
    device.start()
    return device


def _define(
    connection: fakelibvirt.Connection, xml: str, flags: int
) -> MediatedDevice:
    """Define a device that exists, as Nova does; it must exist."""
    name = MediatedDevice(connection, _parse(xml)).name()
    device: MediatedDevice = connection.nodeDeviceLookupByName(name)
    device.define()
    return device


class MediatedDevices(fixtures.Fixture):
    """Makes node devices of type mdev, and counts them on their parents."""

    def _setUp(self) -> None:
        look_up = fakelibvirt.Connection.nodeDeviceLookupByName
        describe = fakelibvirt.Domain.XMLDesc

        def look_up_mdev(connection: fakelibvirt.Connection, name: str) -> Any:
            with _lock:
                try:
                    return look_up(connection, name)
                except KeyError:
                    raise no_device(name) from None

        def names(info: fakelibvirt.HostMdevDevicesInfo) -> list[str]:
            with _lock:
                return list(info.devices)

        def describe_managed(domain: fakelibvirt.Domain, flags: int) -> str:
            xml: str = describe(domain, flags)
            return xml.replace(
                "type='mdev' model", "type='mdev' managed='no' model"
            )

        for name, function in (
            ('Connection.nodeDeviceCreateXML', _create),
            ('Connection.nodeDeviceDefineXML', _define),
            ('Connection.nodeDeviceLookupByName', look_up_mdev),
            ('HostMdevDevicesInfo.get_all_devices', names),
            ('Domain.XMLDesc', describe_managed),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'{_FAKE}.{name}', function))


class Libvirt(fixtures.Fixture):
    """Nova's ``Host`` over a fake libvirt with the given PCI devices.

    :ivar connection: the connection of the host to the fake libvirt
    :ivar host: Nova's real object
    :ivar sysfs: a :class:`nova_accel.testing.fake_sysfs.FakeSysfs`
    """

    def __init__(self, pci_info: fakelibvirt.HostPCIDevicesInfo) -> None:
        self._pci_info = pci_info

    def _setUp(self) -> None:
        self.useFixture(nova_fixtures.LibvirtFixture())
        self.useFixture(MediatedDevices())
        self.useFixture(libvirt_guest.GuestDevices())
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.connection = fakelibvirt.Connection(
            'qemu:///system', pci_info=self._pci_info
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.host.Host.get_connection',
                lambda _host: self.connection,
            )
        )
        self.host = libvirt_host.Host('qemu:///system')
