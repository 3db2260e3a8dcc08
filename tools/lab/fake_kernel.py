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

"""The kernel's half of a hand-written /sys: what happens when it is written.

It makes and removes mediated devices and virtual functions, binds drivers,
resets functions and sets the types of vGPUs; it refuses what a kernel refuses,
with the same errno where it is known; and it tells libvirt what udev would.

Run as ``python -m lab.fake_kernel TREE PLACE``, in the network namespace of
who listens; it shows the tree at the place. The kernel's state is in the tree,
see :mod:`lab.fake_sys`: a file in its directory of faults, with the path of
one that can be written and an errno as its content, has the kernel refuse to
act upon that.
"""

from collections.abc import Callable
import errno
import itertools
import os
import pathlib
import re
import sys

from lab import card_capacity
from lab import fake_sys
from lab import hardware
from lab import served_files
from lab import udev_messages

_UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

#: IOMMU groups of mediated devices; those of PCI functions are lower.
_FIRST_GROUP = 10000


class Kernel:
    """Does what is asked of it by writing to the files of a tree."""

    def __init__(self, root: pathlib.Path, udev: udev_messages.Udev) -> None:
        self._tree = fake_sys.Tree(root)
        self._udev = udev
        self._groups = itertools.count(_FIRST_GROUP)
        machine = fake_sys.read_machine(root)
        self._machine = machine
        self._functions = {
            function.address: function for function in machine.functions
        }
        for card in list(self._functions.values()):
            if card.virtual_functions is not None:
                self._functions.update(
                    (virtual.address, virtual)
                    for virtual in map(
                        card.virtual, range(card.virtual_functions.total)
                    )
                )
        self._cards = card_capacity.Cards(
            self._tree, machine, self._functions.values()
        )
        for function in machine.functions:
            self._cards.update(function)

    def write(self, name: str, content: bytes) -> None:
        """Act upon what a process has written.

        :raises OSError: it is refused, and nothing has changed.
        """
        path = pathlib.PurePath(name)
        if path.name == 'config':
            return
        text = content.decode(errors='replace').strip()
        fault = self._tree.root / fake_sys.FAULTS / path
        try:
            if fault.exists():
                raise OSError(int(fault.read_text()), 'as it was told to')
            if not (self._tree.root / path).exists():
                raise OSError(errno.ENODEV, 'it has gone')
            self._ACTIONS[path.name](self, path, text)
        except OSError as error:
            print(f'refused {text!r} to {path}: {error}', flush=True)
            raise
        print(f'{text!r} to {path}', flush=True)

    def _set_vfs(self, path: pathlib.PurePath, text: str) -> None:
        """As ``sriov_numvfs_store()`` of the kernel's drivers/pci/iov.c."""
        card = self._functions[path.parent.name]
        virtual = card.virtual_functions
        assert virtual is not None
        count, before = _number(text), int(self._tree.read(str(path)))
        if count > virtual.total:
            raise OSError(errno.ERANGE, f'there can be {virtual.total}')
        if count == before:
            return
        if not virtual.configurable or self._driver(card) != card.driver:
            raise OSError(errno.ENOENT, 'no driver that makes them')
        if count and before:
            raise OSError(errno.EBUSY, f'there are {before}')
        if count:
            probe = (
                self._tree.read(f'{card.path}/sriov_drivers_autoprobe') == '1'
            )
            for index in range(count):
                self._add_vf(card.virtual(index), index, probe)
            self._cards.update(card)
            self._tree.request(str(path), str(count))
        else:
            self._remove_vfs(card)

    def _set_autoprobe(self, path: pathlib.PurePath, text: str) -> None:
        self._tree.request(str(path), str(_number(text)))

    def _add_vf(
        self, virtual: hardware.Function, index: int, probe: bool
    ) -> None:
        fake_sys.add_virtual_function(self._tree, virtual, index, probe)
        self._tell('add', virtual)

    def _remove_vfs(self, card: hardware.Function) -> None:
        numvfs = f'{card.path}/sriov_numvfs'
        for index in reversed(range(int(self._tree.read(numvfs)))):
            self._tree.remove(f'{card.path}/virtfn{index}')
            self._remove_function(card.virtual(index))
        self._tree.request(numvfs, '0')

    def _remove(self, path: pathlib.PurePath, text: str) -> None:
        """Of a mediated device, or of a PCI function that is pulled out."""
        if _number(text) != 1:
            raise OSError(errno.EINVAL, 'only 1 means something')
        if _UUID.fullmatch(path.parent.name):
            self._remove_mdev(str(path.parent))
        else:
            self._remove_function(self._functions[path.parent.name])

    def _remove_function(self, function: hardware.Function) -> None:
        self._driver_leaves(function)
        fake_sys.remove_function(self._tree, function, self._driver(function))
        self._tell('remove', function)

    def _rescan(self, _path: pathlib.PurePath, _text: str) -> None:
        """What was pulled out is there again."""
        for function in self._machine.functions:
            if not (self._tree.root / function.path).exists():
                fake_sys.add_function(self._tree, function)
                self._tell('add', function)

    def _probe(self, _path: pathlib.PurePath, text: str) -> None:
        function = self._present(text)
        if self._driver(function) is None:
            override = self._tree.read(f'{function.path}/driver_override')
            driver = function.driver if override == '(null)' else override
            if driver is not None:
                self._bind_to(function, driver)

    def _bind(self, path: pathlib.PurePath, text: str) -> None:
        function, driver = self._present(text), path.parent.name
        override = self._tree.read(f'{function.path}/driver_override')
        if driver not in (override, function.driver):
            raise OSError(errno.ENODEV, f'{driver} is not for it')
        if self._driver(function) is not None:
            raise OSError(errno.EBUSY, 'it has a driver')
        self._bind_to(function, driver)

    def _bind_to(self, function: hardware.Function, driver: str) -> None:
        if not (self._tree.root / f'bus/pci/drivers/{driver}').exists():
            # One that is not loaded is not missed.
            return
        fake_sys.bind(self._tree, function, driver)
        self._cards.update(function)
        self._tell('bind', function)

    def _unbind(self, path: pathlib.PurePath, text: str) -> None:
        function, driver = self._present(text), path.parent.name
        if self._driver(function) != driver:
            raise OSError(errno.ENODEV, f'{driver} does not have it')
        self._driver_leaves(function)
        fake_sys.unbind(self._tree, function, driver)
        self._cards.update(function)
        self._tell('unbind', function)

    def _driver_leaves(self, function: hardware.Function) -> None:
        """What a driver has made of a function goes with the driver."""
        for mdev in self._cards.mdevs(function.path):
            self._remove_mdev(mdev)
        if function.virtual_functions is not None:
            self._remove_vfs(function)

    def _new_id(self, _path: pathlib.PurePath, _text: str) -> None:
        """Drivers are told by ``driver_override`` what they are for."""
        raise OSError(errno.EINVAL, 'use driver_override')

    def _override(self, path: pathlib.PurePath, text: str) -> None:
        self._tree.request(str(path), text or '(null)')

    def _reset(self, _path: pathlib.PurePath, text: str) -> None:
        if _number(text) != 1:
            raise OSError(errno.EINVAL, 'only 1 means something')

    def _set_vgpu_type(self, path: pathlib.PurePath, text: str) -> None:
        function = self._functions[path.parents[1].name]
        wanted, now = _number(text), int(self._tree.read(str(path)))
        if wanted and (
            now
            or wanted
            not in [each.number for each in self._cards.creatable(function)]
        ):
            raise OSError(errno.EINVAL, f'{wanted} cannot be made there')
        self._tree.request(str(path), str(wanted))
        self._cards.update(function)

    def _create(self, path: pathlib.PurePath, text: str) -> None:
        tree, mdev_type, uuid = self._tree, path.parent, text.lower()
        if not _UUID.fullmatch(uuid):
            raise OSError(errno.EINVAL, 'no uuid')
        if (tree.root / f'bus/mdev/devices/{uuid}').exists():
            raise OSError(errno.EEXIST, 'it exists')
        if not int(
            (tree.root / mdev_type / 'available_instances').read_text()
        ):
            raise OSError(errno.ENOSPC, f'no {mdev_type.name} is left')
        parent = str(mdev_type.parents[1])
        device = f'{parent}/{uuid}'
        group = f'kernel/iommu_groups/{next(self._groups)}'
        tree.write(f'{device}/uevent', 'DRIVER=vfio_mdev')
        tree.link(f'{device}/mdev_type', str(mdev_type))
        tree.link(f'{device}/subsystem', 'bus/mdev')
        tree.link(f'{group}/devices/{uuid}', device)
        tree.link(f'{device}/iommu_group', group)
        tree.request(f'{device}/remove')
        tree.link(f'{mdev_type}/devices/{uuid}', device)
        tree.link(f'bus/mdev/devices/{uuid}', device)
        self._cards.update_parent(parent)
        self._udev.tell('add', device, 'mdev')

    def _remove_mdev(self, device: str) -> None:
        path, tree = self._tree.root / device, self._tree
        mdev_type = os.path.relpath((path / 'mdev_type').resolve(), tree.root)
        group = os.path.relpath((path / 'iommu_group').resolve(), tree.root)
        for each in (
            f'bus/mdev/devices/{path.name}',
            f'{mdev_type}/devices/{path.name}',
            group,
            device,
        ):
            tree.remove(each)
        self._cards.update_parent(os.path.dirname(device))
        self._udev.tell('remove', device, 'mdev')

    def _present(self, address: str) -> hardware.Function:
        if not (self._tree.root / f'bus/pci/devices/{address}').exists():
            raise OSError(errno.ENODEV, f'no {address}')
        return self._functions[address]

    def _driver(self, function: hardware.Function) -> str | None:
        link = self._tree.root / function.path / 'driver'
        return link.readlink().name if link.is_symlink() else None

    def _tell(self, action: str, function: hardware.Function) -> None:
        self._udev.tell(
            action,
            function.path,
            'pci',
            fake_sys.uevent(
                function,
                None if action == 'remove' else self._driver(function),
            ),
        )

    _ACTIONS: dict[str, Callable[['Kernel', pathlib.PurePath, str], None]] = {
        'sriov_numvfs': _set_vfs,
        'sriov_drivers_autoprobe': _set_autoprobe,
        'remove': _remove,
        'rescan': _rescan,
        'drivers_probe': _probe,
        'bind': _bind,
        'unbind': _unbind,
        'new_id': _new_id,
        'remove_id': _new_id,
        'driver_override': _override,
        'reset': _reset,
        'current_vgpu_type': _set_vgpu_type,
        'create': _create,
    }


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise OSError(errno.EINVAL, 'no number') from None


def main(root: pathlib.Path, place: pathlib.Path) -> None:
    """Serve the tree until the process is ended."""
    kernel = Kernel(root, udev_messages.Udev())
    files = served_files.ServedFiles(root, kernel.write)
    files.mount(place)
    files.serve()


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
