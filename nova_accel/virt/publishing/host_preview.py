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

"""A look at this host as nova-compute looks at it, which changes nothing.

It needs neither nova-compute nor the services that this talks to: libvirt, the
kernel and the configuration are enough. The connection to libvirt can only
read, and sysfs takes no writes. This process does what
nova-compute does in processes of root: it sees as much as its user may.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import logging
import os
import pathlib

from nova.virt import node as nova_node
from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import host as libvirt_host

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.drivers import base
from nova_accel.drivers import loading
from nova_accel.host import all_guests
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import arq_types
from nova_accel.model.devices import device_spec
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import holdings
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

CONF = conf.CONF

#: The words about facts that only root sees.
UNSEEN = (
    'Run it as root to see everything: other users do not see which processes '
    'use a device, nor what servers have'
)

# The uuid of a host whose nova-compute has not started yet.
_NO_UUID = '00000000-0000-0000-0000-000000000000'


class Preview:
    """One look at a host: everything is read once, for any lines.

    :ivar drivers: name -> driver, for all installed drivers
    :raises DeviceError: libvirt does not list its devices.
    :raises nova.exception.NovaException: a line of Nova's own cannot be used.
    """

    def __init__(self, host: libvirt_host.Host) -> None:
        privileged.stay_in_process()
        self.nodename: str = host.get_hostname()
        node_uuid = _node_uuid()
        self.sysfs = sysfs_tree.of(host).read_only
        self._node_devices = _OneLook(host)
        self.drivers: Mapping[str, base.Driver] = loading.load(
            self._node_devices, self.sysfs, node_uuid
        )
        self._claims = nova_claims.NovaClaims(self.nodename, node_uuid)
        self._guests = units_in_use.UnitsInUse(
            _holdings(self.nodename),
            all_guests.AllGuests(host),
            host_view.CurrentState(host_view.View(node_uuid)),
        )
        self._in_use: units_in_use.Found | None = None
        self._host_use = host_use.HostUse(self.sysfs)

    @property
    def functions(self) -> Sequence[pci_function.PciFunction]:
        """The PCI functions of the host, by their addresses."""
        return sorted(
            self._node_devices.look().functions.values(),
            key=lambda each: each.address,
        )

    def discover(
        self, specs: Sequence[device_spec.DeviceSpec]
    ) -> discovery.Discovered:
        """The devices that nova-compute would find by these lines.

        If a server has a device, it tells what the driver sees of it now.

        :raises DeviceError: libvirt does not list its devices, or guests.
        """
        return discovery.discover(
            self._node_devices,
            self.drivers,
            specs,
            self._claims,
            self._look_at_guests,
            lambda: self._host_use,
            last_answers.LastAnswers(),
        )

    def _look_at_guests(
        self, mdevs: Iterable[pci_function.Mdev]
    ) -> units_in_use.Found:
        if self._in_use is None:
            self._in_use = self._guests.look(mdevs)
        return self._in_use


def of_this_host() -> Preview:
    """A look at this host, by libvirt's socket for readers.

    :raises DeviceError: libvirt does not answer; names the cure.
    :raises nova.exception.NovaException: a line of Nova's own cannot be used.
    """
    libvirt = libvirt_host.libvirt
    if libvirt is None:
        raise exceptions.DeviceError(
            'Python\'s module libvirt is not installed, without which '
            'nova-compute does not start either: install python3-libvirt'
        )
    # Without a handler libvirt prints its errors, too.
    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    uri = libvirt_driver.LibvirtDriver._uri()
    try:
        # Nova would send a notification if it failed.
        libvirt.openReadOnly(uri).close()
    except libvirt.libvirtError as error:
        raise exceptions.DeviceError(
            f'libvirt does not answer at {uri} ([libvirt] connection_uri): '
            f'{error}. Start it: systemctl start libvirtd, or virtqemud and '
            'virtnodedevd'
        ) from error
    # It warns that it gets no events, which nobody waits for here.
    logging.getLogger(libvirt_host.__name__).setLevel(logging.ERROR)
    return Preview(libvirt_host.Host(uri, read_only=True))


class _OneLook(libvirt_devices.NodeDevices):
    """The node devices as they are at the first look."""

    def look(self) -> libvirt_devices.HostDevices:
        return self._devices

    @functools.cached_property
    def _devices(self) -> libvirt_devices.HostDevices:
        return super().look()


def _node_uuid() -> str:
    """The uuid of the compute node, some uuid if nova-compute has none yet.

    :raises nova.exception.InvalidNodeConfiguration: its file is damaged.
    """
    try:
        return nova_node.read_local_node_uuid() or _NO_UUID
    except PermissionError:
        return _NO_UUID


def _holdings(nodename: str) -> holdings.Holdings:
    """The holdings of servers by the journal, none if it cannot be read."""
    directory = pathlib.Path(CONF.state_path) / 'nova_accel' / nodename
    if not os.access(directory, os.R_OK | os.X_OK):
        # The journal would make it.
        return _NoHoldings()
    return holdings.Holdings(attach_journal.AttachJournal(directory))


class _NoHoldings(holdings.Holdings):
    """The holdings of a host without a journal."""

    def __init__(self) -> None:
        pass

    def arqs(self, role: arq_types.Role | None = None) -> list[arq_types.Arq]:
        return []
