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

"""Find an NVMe drive by its PCI address and serial number, as root.

The kernel gives the name of a vanished drive (``nvme0``) to the next one. So a
name is valid only while the kernel's object with that name exists.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import errno
import os
import pathlib
import re

from nova_accel.privileged import arguments
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function

#: The directories of sysfs and of device nodes; callers cannot choose them.
SYSFS = pathlib.Path('/sys')
DEVICES = pathlib.Path('/dev')

_CONTROLLER = re.compile(r'nvme[0-9]{1,6}')

#: With native multipathing the name of a path includes the controller:
#: nvme0c1n1 is a path to nvme0n1, and has no device node.
NAMESPACE = re.compile(
    r'(?P<head>nvme[0-9]{1,6})(c[0-9]{1,6})?(?P<tail>n[0-9]{1,6})'
)


@dataclasses.dataclass(frozen=True)
class Drive:
    """A controller that is bound to the driver ``nvme``.

    ``object_number`` is the number of the kernel's object with this name; no
    other object gets it while the host is up (``fs/kernfs/dir.c``).
    """

    address: str
    name: str
    serial: str
    object_number: int

    @property
    def node(self) -> pathlib.Path:
        return DEVICES / self.name

    @property
    def namespaces(self) -> Mapping[int, pathlib.Path]:
        """Id -> block device of the attached namespaces."""
        found = {}
        for path in sorted(_directory(self.address, self.name).iterdir()):
            match = NAMESPACE.fullmatch(path.name)
            if match is not None:
                number = int(_text(path / 'nsid'))
                found[number] = DEVICES / (match['head'] + match['tail'])
        return found


@contextlib.contextmanager
def drive(address: str, serial: str) -> Iterator[Drive]:
    """The drive at an address, checked before and after the body.

    :param address: ``0000:3d:00.0``
    :param serial: its serial number, as sysfs has it
    :raises ValueError: it is not there, or no longer after the body, or this
        host offers it to no guest.
    :raises OSError: it disappears at this moment.
    """
    name = pci_function.address(address)
    offered.check(SYSFS, name)
    found = _look(name)
    if not arguments.text('serial', serial) or found.serial != serial:
        raise ValueError(
            f'the drive at {address} has the serial number {found.serial!r}, '
            f'not {serial[:50]!r}'
        )
    yield found
    if _look(found.address) != found:
        raise ValueError(
            f'the drive {serial} was taken away from {address} meanwhile'
        )


@contextlib.contextmanager
def unused(found: Drive) -> Iterator[None]:
    """Keep the host from using the drive's namespaces during the body.

    The kernel gives a block device to one exclusive holder only. File systems,
    swap, LVM, MD, multipathing and ZFS claim their devices or partitions in
    this way. Without native multipathing, each controller of a drive has block
    devices of its own.

    :raises ValueError: the host uses one of them.
    """
    with contextlib.ExitStack() as stack:
        for path in dict.fromkeys(
            path
            for each in (found, *_others(found))
            for path in each.namespaces.values()
        ):
            try:
                file = os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    raise ValueError(
                        f'the host itself uses {path} of {found.address}',
                    ) from error
                raise
            stack.callback(os.close, file)
        yield


def _others(found: Drive) -> Iterator[Drive]:
    """The other controllers of the same drive that the driver has."""
    subsystem = _subsystem(found)
    for path in sorted((SYSFS / 'bus/pci/drivers/nvme').glob('*:*:*.*')):
        if path.name == found.address:
            continue
        # One without a controller leads nowhere.
        with contextlib.suppress(ValueError, FileNotFoundError):
            other = _look(pci_function.address(path.name))
            if subsystem and subsystem == _subsystem(other):
                yield other


def _subsystem(found: Drive) -> tuple[str, str] | None:
    """The names of the drive, None if it does not say them."""
    try:
        nqn = _text(_directory(found.address, found.name) / 'subsysnqn')
    except FileNotFoundError:
        return None
    return nqn, found.serial


def _look(address: str) -> Drive:
    try:
        (name,) = (
            path.name
            for path in _directory(address).iterdir()
            if _CONTROLLER.fullmatch(path.name)
        )
    except (FileNotFoundError, ValueError) as error:
        raise ValueError(
            f'the driver nvme has no drive at {address}'
        ) from error
    directory = _directory(address, name)
    return Drive(
        address, name, _text(directory / 'serial'), directory.stat().st_ino
    )


def _directory(address: str, *parts: str) -> pathlib.Path:
    return pci_function.attribute(SYSFS, address, '/'.join(('nvme', *parts)))


def _text(path: pathlib.Path) -> str:
    return path.read_text(encoding='utf-8', errors='replace').strip()
