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

"""sysfs, for facts and actions on PCI functions that libvirt lacks.

Everything is below one root, so that tests can use their own.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import pathlib

from nova.virt.libvirt import host as libvirt_host

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.model import pci_address
from nova_accel.privileged import pci_attributes


def of(host: libvirt_host.Host) -> 'Sysfs':
    """The sysfs of libvirt's host.

    Tests replace this function, see :mod:`nova_accel.testing.fake_sysfs`.
    """
    return Sysfs()


class Sysfs:
    """The attributes of the PCI functions of one host.

    An attribute is named by its path below the function's directory, like
    ``sriov_numvfs`` or ``nvidia/current_vgpu_type``.

    :param root: the mount point of sysfs
    :param proc: the mount point of proc
    :param write: writes an attribute, called with (address, attribute, value)
        as texts; the default is a privileged process, which only knows the
        real sysfs
    """

    def __init__(
        self,
        root: pathlib.Path = pci_attributes.ROOT,
        write: Callable[[str, str, str], None] = pci_attributes.write,
        proc: pathlib.Path = pathlib.Path('/proc'),
    ) -> None:
        self.root = root
        self.proc = proc
        self._write = write

    def read(
        self, address: pci_address.PciAddress, attribute: str
    ) -> str | None:
        """The value of an attribute, without surrounding white space.

        :returns: None if there is no such attribute or function
        :raises DeviceError: it cannot be read.
        """
        with _unless_absent(f'{attribute} of {address}'):
            return (
                self._path(address, attribute)
                .read_text(encoding='utf-8', errors='replace')
                .strip()
            )
        return None

    def names(
        self, address: pci_address.PciAddress, directory: str = '.'
    ) -> tuple[str, ...]:
        """The sorted names in a directory, empty if there is none.

        :raises DeviceError: it cannot be read.
        """
        with _unless_absent(f'{directory} of {address}'):
            return tuple(
                sorted(
                    path.name
                    for path in self._path(address, directory).iterdir()
                )
            )
        return ()

    def link(
        self, address: pci_address.PciAddress, attribute: str
    ) -> str | None:
        """The last part of a symbolic link's target, None if there is none.

        ``driver`` gives the name of the driver, ``iommu_group`` the number of
        the group.

        :raises DeviceError: it cannot be read.
        """
        with _unless_absent(f'{attribute} of {address}'):
            return self._path(address, attribute).readlink().name
        return None

    def real_path(
        self, address: pci_address.PciAddress
    ) -> tuple[str, ...] | None:
        """The parts of the function's path below sysfs' root.

        They name the root complex, the bridges above it, and the function.

        :returns: None if there is no such function
        :raises DeviceError: it cannot be read.
        """
        with _unless_absent(f'the path of {address}'):
            path = self._path(address, '.').resolve(strict=True)
            root = self.root.resolve(strict=True)
            if path.is_relative_to(root):
                return path.relative_to(root).parts
        return None

    def identity(
        self, address: pci_address.PciAddress, directory: str
    ) -> str | None:
        """A text unique to the directory, None if there is no such directory.

        It is the number of the kernel's object; ``fs/kernfs/dir.c`` never
        gives a number twice until the host reboots. If the driver creates the
        object again, the text is another one.

        :raises DeviceError: it cannot be read.
        """
        with _unless_absent(f'{directory} of {address}'):
            # An object of a class may be a link, which stat() follows.
            return str(self._path(address, directory).stat().st_ino)
        return None

    def write(
        self, address: pci_address.PciAddress, attribute: str, value: str
    ) -> None:
        """Write an attribute, one of ``privileged.sysfs.ATTRIBUTES``.

        :raises DeviceError: it does not exist, or the function refuses the
            value.
        """
        try:
            self._write(str(address), attribute, value)
        except privileged.ERRORS as error:
            reason = getattr(error, 'strerror', None) or error
            raise exceptions.DeviceError(
                f'{value} cannot be written to {attribute} of {address}: '
                f'{reason}'
            ) from error

    def _path(
        self, address: pci_address.PciAddress, attribute: str
    ) -> pathlib.Path:
        return self.root / 'bus/pci/devices' / str(address) / attribute


@contextlib.contextmanager
def _unless_absent(what: str) -> Iterator[None]:
    """:raises DeviceError: it exists, but cannot be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise exceptions.DeviceError(
            f'{what} cannot be read: {error.strerror}'
        ) from error
