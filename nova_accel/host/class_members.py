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

"""The objects of a class in sysfs, and the PCI functions that have them."""

from collections.abc import Mapping
import itertools
import os
import pathlib
import re

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.privileged import nvme_drive

_CONTROLLER = re.compile(r'nvme[0-9]+')

# A network card has about 300 below it, most of them for its queues.
_MAX_DIRECTORIES = 10_000

_Members = Mapping[pci_address.PciAddress, tuple[pathlib.Path, ...]]


class ClassMembers:
    """The objects at one moment; each class is listed once."""

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._listed: dict[str, _Members | OSError] = {}

    def of(
        self, address: pci_address.PciAddress, class_: str
    ) -> tuple[pathlib.Path, ...]:
        """The members of a function: a disk with several paths is in each.

        :param class_: such as ``block``
        :raises OSError: the class cannot be listed, and the function may have
            some.
        """
        if class_ not in self._listed:
            try:
                self._listed[class_] = self._list(class_)
            except OSError as error:
                self._listed[class_] = error
                # Once, not for each function of the host.
                sysfs_tree.note(
                    address,
                    f'class/{class_} cannot be listed: '
                    f'{sysfs_tree.told(error)}, so no function can be offered '
                    'that may have a part of it',
                )
        listed = self._listed[class_]
        if not isinstance(listed, OSError):
            return listed.get(address, ())
        if self._may_have(address, class_):
            raise listed
        return ()

    def _list(self, class_: str) -> _Members:
        found: dict[pci_address.PciAddress, list[pathlib.Path]] = {}
        directory = self._root / 'class' / class_
        for name in names(directory):
            path = (directory / name).resolve()
            for address in _functions(path):
                found.setdefault(address, []).append(path)
        return {address: tuple(paths) for address, paths in found.items()}

    def _may_have(self, address: pci_address.PciAddress, class_: str) -> bool:
        """Whether a directory below the function's own is of the class.

        One that is gone has none.

        :raises OSError: one cannot be listed.
        """
        top = self._root / 'bus/pci/devices' / str(address)
        directories = os.walk(top, onerror=_fail)
        for path, _directories, _files in itertools.islice(
            directories, _MAX_DIRECTORIES
        ):
            subsystem = pathlib.Path(path, 'subsystem')
            if subsystem.is_symlink() and subsystem.readlink().name == class_:
                return True
        return next(directories, None) is not None


def _fail(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def names(directory: pathlib.Path) -> list[str]:
    """The names in a directory, none if it does not exist.

    :raises OSError: it cannot be listed.
    """
    try:
        return sorted(path.name for path in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _functions(path: pathlib.Path) -> frozenset[pci_address.PciAddress]:
    """The PCI functions to which an object in sysfs belongs.

    With native NVMe multipathing, disks (heads) and their partitions are below
    their subsystem, which has links to the controllers. A disk belongs to the
    controllers that have a path to it.
    """
    nearest = _nearest(path)
    if nearest is not None:
        return frozenset({nearest})
    for head in (path, *path.parents):
        if head.parent.parent.name == 'nvme-subsystem':
            controllers = [
                (head.parent / name).resolve()
                for name in names(head.parent)
                if _CONTROLLER.fullmatch(name)
            ]
            return frozenset(
                address
                for controller in controllers
                if head.name in map(_head, names(controller))
                if (address := _nearest(controller)) is not None
            )
    return frozenset()


def _head(path: str) -> str | None:
    """The name of the disk to which a controller's path leads."""
    match = nvme_drive.NAMESPACE.fullmatch(path)
    return match and match['head'] + match['tail']


def _nearest(path: pathlib.Path) -> pci_address.PciAddress | None:
    for part in reversed(path.parts):
        if part.count(':') == 2:
            try:
                return pci_address.PciAddress.parse(part)
            except exceptions.InvalidName:
                continue
    return None
