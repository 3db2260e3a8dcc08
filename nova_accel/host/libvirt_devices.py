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


"""libvirt's node devices: list them, create and destroy mediated devices.

libvirt is used through Nova's ``Host``, which keeps the connection alive and
works in both of Nova's concurrency modes.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
from typing import TypeVar

from nova import exception
from nova import utils as nova_utils
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import host as libvirt_host
from nova.virt.libvirt import utils as libvirt_utils
import tenacity

from nova_accel import exceptions
from nova_accel.host import pci_function
from nova_accel.host import subsystem_ids
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address

_Parsed = TypeVar('_Parsed')

#: Nova holds this lock while it lists mediated devices and looks each of them
#: up. If we destroyed one in between, the boot of Nova's server would fail.
exclusive = nova_utils.synchronized(libvirt_driver.VGPU_RESOURCE_SEMAPHORE)


@dataclasses.dataclass(frozen=True)
class HostDevices:
    """All of the host's devices at one moment.

    ``unreadable`` are texts that name the node devices that are left out, and
    why. ``held_mdevs`` are the mediated devices that instances hold, whether
    they exist or not: a reboot of the host removes them.
    """

    functions: Mapping[pci_address.PciAddress, pci_function.PciFunction]
    mdevs: tuple[pci_function.Mdev, ...] = ()
    unreadable: tuple[str, ...] = ()
    held_mdevs: tuple[pci_function.Mdev, ...] = ()

    def parts(
        self, card: pci_function.PciFunction
    ) -> list[pci_function.PciFunction]:
        """The virtual functions of a card; the operator is told of others."""
        found = []
        for address in card.virtual_functions:
            if address in self.functions:
                found.append(self.functions[address])
            elif not self.is_unreadable(address):
                sysfs_tree.note(
                    address,
                    f'it is a virtual function of {card.address}, but not '
                    'among libvirt\'s node devices',
                )
        return found

    def is_unreadable(self, address: pci_address.PciAddress) -> bool:
        """Whether libvirt lists a function, but does not describe it."""
        return any(
            text.startswith(f'{address.node_device}:')
            for text in self.unreadable
        )


class NodeDevices:
    """The node devices of one host.

    :param gone_within_s: how long a destroyed device may still be listed, in
        seconds; libvirt removes it from its list when the kernel's event
        arrives
    """

    def __init__(
        self, host: libvirt_host.Host, gone_within_s: float = 10
    ) -> None:
        self._host = host
        self._gone_within_s = gone_within_s

    def look(self) -> HostDevices:
        """The host's devices at this moment.

        :raises DeviceError: libvirt does not list its devices, or describes
            none of them.
        """
        unreadable: list[str] = []
        with _libvirt_errors('libvirt does not list its devices'):
            functions = list(
                self._read(
                    self._host.list_pci_devices(),
                    pci_function.parse_pci,
                    unreadable,
                )
            )
            if unreadable and not functions:
                raise exceptions.DeviceError(
                    f'libvirt describes none of its devices: {unreadable[0]}'
                )
            parents, mdevs = self._look_at_mdevs(
                [
                    function.name
                    for function in functions
                    if function.mdev_types
                ],
                unreadable,
            )
        return HostDevices(
            subsystem_ids.added(
                {each.address: each for each in (*functions, *parents)},
                sysfs_tree.of(self._host),
            ),
            mdevs,
            tuple(unreadable),
        )

    def function(
        self, address: pci_address.PciAddress
    ) -> pci_function.PciFunction:
        """A function as it is at this moment.

        :raises DeviceError: it does not exist, or its XML is unusable.
        """
        with _libvirt_errors(f'{address} is not there'):
            return pci_function.parse_pci(self._xml(address.node_device))

    @exclusive
    def _look_at_mdevs(
        self,
        parents: Iterable[str],
        unreadable: list[str],
    ) -> tuple[list[pci_function.PciFunction], tuple[pci_function.Mdev, ...]]:
        """The parents of mediated devices, and the devices they have made.

        The lock keeps devices from coming or going meanwhile. One that did
        would count twice or not at all.
        """
        functions = list(
            self._read(parents, pci_function.parse_pci, unreadable)
        )
        return functions, self._read_mdevs(unreadable)

    @exclusive
    def mdevs(self) -> tuple[pci_function.Mdev, ...]:
        """The existing mediated devices that can be read.

        :raises DeviceError: libvirt does not list them.
        """
        with _libvirt_errors('libvirt does not list its devices'):
            return self._read_mdevs([])

    @exclusive
    def create_mdev(
        self, uuid: str, parent: pci_address.PciAddress, mdev_type: str
    ) -> None:
        """Create a transient mediated device, unless it exists already.

        :raises DeviceError: the parent refuses, or the existing one has
            another parent or type.
        """
        wanted = pci_function.Mdev(uuid, mdev_type, parent)
        with _libvirt_errors(f'{parent} makes no {mdev_type} {uuid}'):
            existing = self._find(uuid)
            if existing is None:
                self._host.device_create(_mdev_config(wanted))
                existing = self._find(uuid)
        if existing is None:
            raise exceptions.DeviceError(
                f'{parent} was told to make a {mdev_type}, but {uuid} is not '
                'there'
            )
        if existing != wanted:
            raise exceptions.DeviceError(
                f'the mediated device {uuid} is a {existing.type} of '
                f'{existing.parent}, not a {mdev_type} of {parent}'
            )

    @exclusive
    def destroy_mdev(self, uuid: str) -> None:
        """Destroy a mediated device if it exists.

        :raises DeviceError: it is in use, or does not disappear.
        """
        with _libvirt_errors(f'the mediated device {uuid} is not destroyed'):
            for name in self._names(uuid):
                with _gone_is_fine():
                    device = self._host.device_lookup_by_name(name)
                    if device.isPersistent():
                        # Nova's own code defines those of a Cyborg.
                        # Otherwise libvirt would make it again.
                        device.undefine()
                    device.destroy()
            try:
                tenacity.Retrying(
                    retry=tenacity.retry_if_result(bool),
                    wait=tenacity.wait_fixed(0.1),
                    stop=tenacity.stop_after_delay(self._gone_within_s),
                )(self._names, uuid)
            except tenacity.RetryError as error:
                raise exceptions.DeviceError(
                    f'the mediated device {uuid} was destroyed, but is '
                    f'still there after {self._gone_within_s} s'
                ) from error

    def _read_mdevs(
        self, unreadable: list[str]
    ) -> tuple[pci_function.Mdev, ...]:
        found = self._read(
            self._host.list_mediated_devices(),
            pci_function.parse_mdev,
            unreadable,
        )
        return tuple(mdev for mdev in found if mdev is not None)

    def _read(
        self,
        names: Iterable[str],
        parse: Callable[[str], _Parsed],
        unreadable: list[str],
    ) -> Iterator[_Parsed]:
        """Parse each node device that still exists.

        :raises libvirtError: the connection is lost.
        """
        for name in names:
            try:
                with _gone_is_fine():
                    yield parse(self._xml(name))
            except exceptions.DeviceError as error:
                unreadable.append(f'{name}: {error}')
            except (libvirt_host.libvirt.libvirtError, ValueError) as error:
                if _is_of_connection(error):
                    raise
                unreadable.append(f'{name}: libvirt fails at it: {error}')

    def _xml(self, name: str) -> str:
        xml: str = self._host.device_lookup_by_name(name).XMLDesc(0)
        return xml

    def _find(self, uuid: str) -> pci_function.Mdev | None:
        """:raises DeviceError: its XML is unusable."""
        for name in self._names(uuid):
            with _gone_is_fine():
                return pci_function.parse_mdev(self._xml(name))
        return None

    def _names(self, uuid: str) -> list[str]:
        """The names of a mediated device's node devices, one at most.

        Since 7.7 libvirt appends the parent's address to the name.
        """
        prefix = libvirt_utils.mdev_uuid2name(uuid)
        return [
            name
            for name in self._host.list_mediated_devices()
            if name.startswith(prefix)
        ]


def _mdev_config(mdev: pci_function.Mdev) -> vconfig.LibvirtConfigNodeDevice:
    config = vconfig.LibvirtConfigNodeDevice()
    config.parent = mdev.parent.node_device
    config.mdev_information = vconfig.LibvirtConfigNodeDeviceMdevInformation()
    config.mdev_information.type = mdev.type
    config.mdev_information.uuid = mdev.uuid
    return config


def _is_of_connection(error: Exception) -> bool:
    """Whether it says nothing of the device that was asked for.

    Nova tells a lost connection in the same way (``virt/libvirt/host.py``).
    """
    return isinstance(
        error, libvirt_host.libvirt.libvirtError
    ) and error.get_error_domain() in (
        libvirt_host.libvirt.VIR_FROM_REMOTE,
        libvirt_host.libvirt.VIR_FROM_RPC,
    )


@contextlib.contextmanager
def _libvirt_errors(fault: str) -> Iterator[None]:
    try:
        yield
    except (
        libvirt_host.libvirt.libvirtError,
        # Nova raises this without a connection to libvirt.
        exception.HypervisorUnavailable,
    ) as error:
        raise exceptions.DeviceError(f'{fault}: {error}') from error


@contextlib.contextmanager
def _gone_is_fine() -> Iterator[None]:
    """Ignore that a device disappeared after it was listed."""
    try:
        yield
    except libvirt_host.libvirt.libvirtError as error:
        if (
            error.get_error_code()
            != libvirt_host.libvirt.VIR_ERR_NO_NODE_DEVICE
        ):
            raise
