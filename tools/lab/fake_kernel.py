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

"""The kernel's half of mediated devices, for a hand-written /sys.

It serves the files ``create`` of types and ``remove`` of devices, and tells
libvirt what udev would. Unlike a kernel it answers a little after the write,
and cannot refuse one.

Run as ``python -m lab.fake_kernel TREE UDEV``, in the network namespace of who
listens. In the directory UDEV, :file:`udevadm` asks whether all is done.
"""

from collections.abc import Callable
import itertools
import os
import pathlib
import re
import selectors
import shutil
import socket
import struct
import sys
import time

from lab import fake_sys

_UUID = re.compile(r'[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}')

#: IOMMU groups of mediated devices; those of PCI functions are lower.
_FIRST_GROUP = 100


class Udev:
    """Sends what udev tells its listeners of devices that come and go."""

    _NETLINK_KOBJECT_UEVENT = 15
    _GROUP = 2
    _MAGIC = 0xfeedcafe

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW, self._NETLINK_KOBJECT_UEVENT)
        self._socket.bind((0, 0))
        self._number = itertools.count(int(time.time()))

    def tell(self, action: str, device: str, subsystem: str) -> None:
        number = next(self._number)
        properties = b''.join(
            f'{key}={value}\0'.encode() for key, value in (
                ('ACTION', action), ('DEVPATH', f'/{device}'),
                ('SUBSYSTEM', subsystem), ('SEQNUM', number),
                ('USEC_INITIALIZED', number)))
        # prefix, magic, sizes and offset; no filters of listeners
        header = struct.pack('=8sIIII16x', b'libudev',
                             socket.htonl(self._MAGIC), 40, 40,
                             len(properties))
        self._socket.sendto(header + properties, (0, self._GROUP))


class Kernel:
    """Makes and removes mediated devices as it is asked to."""

    def __init__(self, root: pathlib.Path, settle: pathlib.Path,
                 udev: Udev) -> None:
        self._tree = fake_sys.Tree(root)
        self._udev = udev
        self._selector = selectors.DefaultSelector()
        self._groups = itertools.count(_FIRST_GROUP)
        for create in root.glob(
                'devices/pci*/*/mdev_supported_types/*/create'):
            self._serve(create, self._create)
        for name in ('settle', 'settled'):
            (settle / name).unlink(missing_ok=True)
            os.mkfifo(settle / name)
        self._settled = os.open(settle / 'settled', os.O_RDWR)
        self._serve(settle / 'settle', self._settle)

    def run(self) -> None:
        while True:
            # What was asked for before settling is done before.
            for key, _events in sorted(
                    self._selector.select(),
                    key=lambda each: each[0].data[1] == self._settle):
                text = os.read(key.fd, 65536).decode(errors='replace')
                path, act = key.data
                act(path, text)

    def _serve(self, request: pathlib.Path,
               act: Callable[[pathlib.Path, str], None]) -> None:
        # Open for both, or the end of the first writer would be its end.
        descriptor = os.open(request, os.O_RDWR | os.O_NONBLOCK)
        self._selector.register(
            descriptor, selectors.EVENT_READ, (request, act))

    def _settle(self, _request: pathlib.Path, text: str) -> None:
        """Answer each that asked with a line."""
        os.write(self._settled, b'\n' * text.count('\n'))

    def _create(self, request: pathlib.Path, text: str) -> None:
        for uuid in _UUID.findall(text):
            self._create_one(request.parent, uuid.lower())

    def _create_one(self, mdev_type: pathlib.Path, uuid: str) -> None:
        tree = self._tree
        if (tree.root / f'bus/mdev/devices/{uuid}').exists():
            print(f'{uuid} exists', flush=True)
            return
        if not self._take(mdev_type, 1):
            print(f'{uuid}: no {mdev_type.name} is left', flush=True)
            return
        type_path = self._name(mdev_type)
        device = f'{type_path.partition("/mdev_supported_types/")[0]}/{uuid}'
        group = f'kernel/iommu_groups/{next(self._groups)}'
        tree.write(f'{device}/uevent', 'DRIVER=nvidia-vgpu-vfio')
        tree.link(f'{device}/mdev_type', type_path)
        tree.link(f'{device}/subsystem', 'bus/mdev')
        tree.link(f'{group}/devices/{uuid}', device)
        tree.link(f'{device}/iommu_group', group)
        tree.request(f'{device}/remove')
        self._serve(tree.root / device / 'remove', self._remove)
        tree.link(f'{type_path}/devices/{uuid}', device)
        tree.link(f'bus/mdev/devices/{uuid}', device)
        self._udev.tell('add', device, 'mdev')

    def _remove(self, request: pathlib.Path, _text: str) -> None:
        device = request.parent
        mdev_type = (device / 'mdev_type').resolve()
        (self._tree.root / f'bus/mdev/devices/{device.name}').unlink()
        (mdev_type / 'devices' / device.name).unlink()
        shutil.rmtree((device / 'iommu_group').resolve())
        for key in list(self._selector.get_map().values()):
            if key.data[0] == request:
                self._selector.unregister(key.fd)
                os.close(key.fd)
        shutil.rmtree(device)
        self._take(mdev_type, -1)
        self._udev.tell('remove', self._name(device), 'mdev')

    def _take(self, mdev_type: pathlib.Path, count: int) -> bool:
        """Change what is left of a type, if there is as much."""
        counter = mdev_type / 'available_instances'
        left = int(counter.read_text()) - count
        if left < 0:
            return False
        self._tree.write(self._name(counter), str(left))
        return True

    def _name(self, path: pathlib.Path) -> str:
        return str(path.relative_to(self._tree.root))


if __name__ == '__main__':
    Kernel(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]),
           Udev()).run()
