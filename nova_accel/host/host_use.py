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

"""The host's own uses of the PCI functions that guests could get.

libvirt would take a function from the host's driver even if a file system, a
network or the console is on it. The files that are read here need no
privilege, so a few uses are not seen, such as a disk of ZFS or an interface in
another network namespace. The code that erases a drive checks again, as root
(:func:`nova_accel.privileged.nvme_drive.unused`).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import functools
import itertools
import pathlib
import re

from nova_accel import exceptions
from nova_accel.host import class_members
from nova_accel.host import gpu_processes
from nova_accel.host import liveness
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import host_uses

_IFF_UP = 1

#: The most bytes of a file in proc: a line for each mount, or each route.
_MAX_BYTES = 1 << 24

_FRAMEBUFFER = re.compile(r'fb[0-9]+')
# Both the devices of the kernel's sysfb and the drivers that take them
# (drivers/firmware/sysfb.c, sysfb_simplefb.c; efifb.c, vesafb.c, simpledrm.c).
_FIRMWARE = re.compile(r'(simple|efi|vesa)(-framebuffer(\.[0-9]+)?|fb|drm)\b')

# The scope in if_inet6 of addresses that interfaces give to themselves.
_LINK_LOCAL = '20'


class HostUse:
    """The host's own uses at one moment; each file is read once at most."""

    def __init__(self, sysfs: sysfs_tree.Sysfs) -> None:
        self._sysfs = sysfs
        self._root, self._proc = sysfs.root, sysfs.proc
        self._members = class_members.ClassMembers(sysfs.root)

    def fault(self, address: pci_address.PciAddress) -> str | None:
        """Why no one can use a function, see :func:`.answering.fault`."""
        return liveness.fault(self._sysfs, address)

    def reason(self, address: pci_address.PciAddress) -> str | None:
        """How the host itself uses a function, None if it does not.

        The text says what ends the use. A function that is bound to a VFIO
        driver can have a frame buffer of the firmware, no other use.

        :raises DeviceError: it cannot be read.
        """
        driver = self._sysfs.link(address, 'driver') or ''
        with _readable(address):
            uses = self._uses_by_firmware(address)
            if 'vfio' not in driver:
                uses = itertools.chain(self._uses(address), uses)
            use = next(uses, None)
        return use and _text(address, use)

    def check_disks(self, addresses: Iterable[pci_address.PciAddress]) -> None:
        """Check that functions have no data of the host.

        :raises DeviceError: a function has data, or that cannot be read.
        """
        for address in addresses:
            with _readable(address):
                for use in self._uses_of_disks(address):
                    raise exceptions.DeviceError(_text(address, use))

    def _uses(self, address: pci_address.PciAddress) -> Iterator[str]:
        if self._sysfs.read(address, 'boot_vga') == '1':
            yield host_uses.DISPLAY.text(
                'it is the display that the host has booted with'
            )
        for path in self._members.of(address, 'graphics'):
            if _FRAMEBUFFER.fullmatch(path.name):
                yield host_uses.DISPLAY.text(
                    f'its framebuffer {path.name} is the console'
                )
        yield from self._uses_of_disks(address)
        for path in self._members.of(address, 'net'):
            for use in self._uses_of_interface(path):
                yield host_uses.INTERFACE.text(use)
        yield from self._processes.uses(address)

    def _uses_by_firmware(
        self, address: pci_address.PciAddress
    ) -> Iterator[str]:
        """The frame buffers that the firmware has made of its memory."""
        for path in (
            *self._members.of(address, 'graphics'),
            *self._members.of(address, 'drm'),
        ):
            if _FIRMWARE.search(str(path)):
                yield host_uses.FIRMWARE.text(
                    f'{path.name} is a frame buffer of the firmware'
                )
        name = self._firmware_memory.get(str(address))
        if name is not None:
            yield host_uses.FIRMWARE.text(
                f'{name} of /proc/iomem has a part of its memory'
            )
        elif self._has_orphan and self._sysfs.read(address, 'boot_vga') == '1':
            yield host_uses.FIRMWARE.text(
                'the frame buffer of the firmware is in its memory'
            )

    @functools.cached_property
    def _has_orphan(self) -> bool:
        """Whether a frame buffer of the firmware does not tell its GPU."""
        return any(
            _FIRMWARE.search(name)
            and any(
                class_members.names(
                    self._root / 'devices/platform' / name / class_
                )
                for class_ in ('drm', 'graphics')
            )
            for name in class_members.names(self._root / 'devices/platform')
        )

    @functools.cached_property
    def _firmware_memory(self) -> Mapping[str, str]:
        """Function -> the name of what the firmware has in its memory.

        Anybody can read the names, in their order, though not the addresses.
        """
        found: dict[str, str] = {}
        above: list[tuple[int, str]] = []
        for line in _lines(self._proc / 'iomem'):
            depth = len(line) - len(line.lstrip())
            name = line.partition(' : ')[2].strip()
            above = [each for each in above if each[0] < depth]
            if _FIRMWARE.search(name) or name == 'BOOTFB':
                found.update((function, name) for _depth, function in above)
            above.append((depth, name))
        return found

    def _uses_of_disks(self, address: pci_address.PciAddress) -> Iterator[str]:
        """The uses of disks and partitions, which are block devices, too."""
        told = host_uses.DISK.text
        for path in self._members.of(address, 'block'):
            holders = class_members.names(path / 'holders')
            if holders:
                yield told(f'{path.name} is a part of {", ".join(holders)}')
            place = self._mounts.get(_read(path / 'dev'))
            if place is not None:
                yield told(f'{path.name} is mounted at {place}')
            if path.name in self._swaps:
                yield told(f'{path.name} is swap')
            if path.name in self._of_btrfs:
                yield told(f'{path.name} is a part of a btrfs')

    def _uses_of_interface(self, interface: pathlib.Path) -> Iterator[str]:
        """The uses of an interface that is up, with or without a carrier."""
        if not int(_read(interface / 'flags') or '0', 16) & _IFF_UP:
            return
        name = interface.name
        if (interface / 'master').is_symlink():
            master = (interface / 'master').readlink().name
            yield f'{name} is a part of {master}'
        for upper in sorted(interface.glob('upper_*')):
            yield f'{name} is below {upper.name.removeprefix("upper_")}'
        if name in self._interfaces_with_addresses:
            yield f'{name} has an address or a route'

    @functools.cached_property
    def _processes(self) -> gpu_processes.GpuProcesses:
        return gpu_processes.GpuProcesses(self._sysfs)

    @functools.cached_property
    def _mounts(self) -> Mapping[str | None, str]:
        """``<major>:<minor>`` -> mount point.

        It includes the mounts of the host's first process, because
        nova-compute in a container has others. See proc_pid_mountinfo(5).
        """
        places: dict[str | None, str] = {}
        for process in ('1', 'self'):
            # The first process may be hidden, see proc(5), hidepid.
            with contextlib.suppress(PermissionError):
                for line in _lines(self._proc / process / 'mountinfo'):
                    fields = line.split()
                    places[fields[2]] = fields[4]
        return places

    @functools.cached_property
    def _swaps(self) -> frozenset[str]:
        return frozenset(
            pathlib.Path(line.split()[0]).name
            for line in _lines(self._proc / 'swaps')[1:]
        )

    @functools.cached_property
    def _of_btrfs(self) -> frozenset[str]:
        """The devices of all btrfs file systems.

        A mount names only one device of its file system, and not by number.
        """
        return frozenset(
            path.name for path in (self._root / 'fs/btrfs').glob('*/devices/*')
        )

    @functools.cached_property
    def _interfaces_with_addresses(self) -> frozenset[str]:
        """The interfaces with an IPv4 route or an IPv6 address.

        An IPv4 address has a route, at least to its own network. A link-local
        IPv6 address does not count, because the interface gives it to itself.
        """
        routes = _lines(self._proc / 'net/route')[1:]
        addresses = map(str.split, _lines(self._proc / 'net/if_inet6'))
        return frozenset(
            [line.split()[0] for line in routes]
            + [
                name
                for _address, _index, _length, scope, _flags, name in addresses
                if scope != _LINK_LOCAL
            ]
        )


@contextlib.contextmanager
def _readable(address: pci_address.PciAddress) -> Iterator[None]:
    """:raises DeviceError: something cannot be read, or is malformed."""
    try:
        yield
    except (OSError, ValueError, LookupError) as error:
        why = (
            f'{error.filename} cannot be read: {sysfs_tree.told(error)}'
            if isinstance(error, OSError)
            else error
        )
        raise exceptions.DeviceError(
            f'cannot find out whether the host uses {address}: {why}',
        ) from error


def _text(address: pci_address.PciAddress, use: str) -> str:
    return f'the host itself uses {address}: {use}'


def _read(path: pathlib.Path) -> str | None:
    try:
        return sysfs_tree.text(path, _MAX_BYTES)
    except FileNotFoundError:
        return None


def _lines(path: pathlib.Path) -> list[str]:
    return (_read(path) or '').splitlines()
