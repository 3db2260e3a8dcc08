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

Everything is below one root, so that tests can use their own. No file
is trusted: it may be absent, fail, have NULs, or never end.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import contextvars
import copy
import errno
import os
import pathlib
import string

from nova.virt.libvirt import host as libvirt_host
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel import reason
from nova_accel.model import pci_address
from nova_accel.privileged import pci_attributes

LOG = logging.getLogger(__name__)

#: The most bytes of an attribute: the kernel writes one page, which has 64 KiB
#: on some machines (``fs/sysfs/file.c``).
MAX_BYTES = 1 << 16

#: Vendors' drivers end a fixed field with NULs.
_SPACE = string.whitespace + '\0'

#: How many functions with the same unreadable attribute a text names.
_MAX_NAMED = 3


def of(host: libvirt_host.Host) -> 'Sysfs':
    """The sysfs of libvirt's host.

    Tests replace this function, see :mod:`nova_accel.testing.fake_sysfs`.
    """
    return Sysfs()


class Notes:
    """The optional facts that a look at the host could not learn."""

    def __init__(self) -> None:
        # Trouble -> the functions that have it, in their order.
        self._found: dict[str, dict[str, None]] = {}

    def add(self, address: pci_address.PciAddress, trouble: str) -> None:
        # Functions with the same trouble share a text.
        trouble = trouble.replace(f' of {address}', '')
        self._found.setdefault(trouble, {})[str(address)] = None

    def texts(self) -> list[str]:
        """A text for each trouble, which names the functions that have it."""
        return [
            f'{reason.some(list(addresses), _MAX_NAMED)}: {trouble}'
            for trouble, addresses in self._found.items()
        ]


_notes: contextvars.ContextVar[Notes | None] = contextvars.ContextVar(
    'notes', default=None
)


@contextlib.contextmanager
def noting() -> Iterator[Notes]:
    """Collect what this thread notes in the body."""
    notes = Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note(address: pci_address.PciAddress, trouble: str) -> None:
    """Tell the operator that a function lacks something it should have.

    A look at the host tells each text once, elsewhere it is logged.

    :param trouble: names the file, if there is one
    """
    notes = _notes.get()
    if notes is None:
        LOG.warning('%s: %s', address, trouble)
    else:
        notes.add(address, trouble)


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
        self._is_optional = False

    @property
    def optional(self) -> 'Sysfs':
        """The same, for facts without which a device can be offered.

        To its methods, a file that exists and cannot be read is absent. They
        note it, so that the operator reads of it.
        """
        found = copy.copy(self)
        found._is_optional = True
        return found

    @property
    def read_only(self) -> 'Sysfs':
        """The same, which refuses to write."""
        return Sysfs(self.root, _refuse_to_write, self.proc)

    def complain(
        self, address: pci_address.PciAddress, attribute: str, trouble: str
    ) -> None:
        """Refuse what an attribute says; :attr:`optional` only notes it.

        :raises DeviceError: names the attribute and the function.
        """
        if not self._is_optional:
            raise exceptions.DeviceError(f'{attribute} of {address} {trouble}')
        note(address, f'{attribute} {trouble}')

    def read(
        self, address: pci_address.PciAddress, attribute: str
    ) -> str | None:
        """The value of an attribute, without surrounding space and NULs.

        A byte that is not UTF-8 becomes U+FFFD.

        :returns: None if there is no such attribute or function
        :raises DeviceError: it cannot be read, or has more than
            :data:`MAX_BYTES`.
        """
        with self._unless_absent(address, attribute):
            return text(self._path(address, attribute))
        return None

    def head(
        self, address: pci_address.PciAddress, attribute: str, length: int
    ) -> bytes | None:
        """The first bytes of a binary attribute, such as ``config``.

        :returns: fewer if it has no more, None if there is no such attribute
        :raises DeviceError: it cannot be read.
        """
        with (
            self._unless_absent(address, attribute),
            self._path(address, attribute).open('rb', 0) as file,
        ):
            return file.read(length)
        return None

    def names(
        self, address: pci_address.PciAddress, directory: str = '.'
    ) -> tuple[str, ...]:
        """The sorted names in a directory, empty if there is none.

        :raises DeviceError: it cannot be read.
        """
        with self._unless_absent(address, directory):
            return tuple(sorted(os.listdir(self._path(address, directory))))
        return ()

    def bound(self, driver: str) -> tuple[pci_address.PciAddress, ...]:
        """The functions that a driver of the kernel has, in their order.

        :raises DeviceError: it cannot be read.
        """
        directory = self.root / 'bus/pci/drivers' / driver
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise exceptions.DeviceError(
                f'{directory} cannot be read: {told(error)}'
            ) from error
        found = []
        for name in names:
            # The others are attributes of the driver.
            with contextlib.suppress(exceptions.InvalidName):
                found.append(pci_address.PciAddress.parse(name))
        return tuple(sorted(found))

    def link(
        self, address: pci_address.PciAddress, attribute: str
    ) -> str | None:
        """The last part of a symbolic link's target, None if there is none.

        ``driver`` gives the name of the driver, ``iommu_group`` the number of
        the group.

        :raises DeviceError: it cannot be read.
        """
        with self._unless_absent(address, attribute):
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
        with self._unless_absent(address, 'its path'):
            path, root = (
                pathlib.Path(os.path.realpath(each, strict=True))
                for each in (self._path(address, '.'), self.root)
            )
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
        with self._unless_absent(address, directory):
            # An object of a class may be a link, which stat() follows.
            return str(self._path(address, directory).stat().st_ino)
        return None

    def write(
        self, address: pci_address.PciAddress, attribute: str, value: str
    ) -> None:
        """Write an attribute, one of ``pci_attributes.ATTRIBUTES``.

        :raises DeviceError: it does not exist, or the function refuses the
            value.
        """
        try:
            self._write(str(address), attribute, value)
        except privileged.ERRORS as error:
            why = getattr(error, 'strerror', None) or error
            raise exceptions.DeviceError(
                f'{value or "an empty text"} cannot be written to {attribute} '
                f'of {address}: {why}'
            ) from error

    def _path(
        self, address: pci_address.PciAddress, attribute: str
    ) -> pathlib.Path:
        return self.root / 'bus/pci/devices' / str(address) / attribute

    @contextlib.contextmanager
    def _unless_absent(
        self, address: pci_address.PciAddress, attribute: str
    ) -> Iterator[None]:
        """:raises DeviceError: it is needed and exists, but is unreadable."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            name = 'its directory' if attribute == '.' else attribute
            self.complain(address, name, f'cannot be read: {told(error)}')


def _refuse_to_write(_address: str, _attribute: str, _value: str) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def text(path: pathlib.Path, max_bytes: int = MAX_BYTES) -> str:
    """The contents of a file of the kernel, as :meth:`Sysfs.read` has them.

    :raises OSError: it cannot be read, or has more than ``max_bytes``.
    """
    with path.open('rb') as file:
        found = file.read(max_bytes + 1)
    if len(found) > max_bytes:
        raise OSError(
            errno.EFBIG, f'it has more than {max_bytes} bytes', str(path)
        )
    return found.decode('utf-8', 'replace').strip(_SPACE)


def told(error: OSError) -> str:
    """The name and the words of an error: ``EIO, Input/output error``.

    The file is the caller's to name.
    """
    return f'{errno.errorcode.get(error.errno or 0, "?")}, {error.strerror}'
