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

"""A hand-written /sys with PCI devices, for libvirt and Nova to read.

Devices are declared with :class:`Function`; :func:`write` makes the tree. It
is mounted over /sys in a mount namespace, see :mod:`lab.namespace`.
"""

from collections.abc import Iterable
import dataclasses
import os
import pathlib
import shutil
import struct


@dataclasses.dataclass(frozen=True)
class MdevType:
    """A type of mediated device, and how many of it can be made."""

    name: str
    title: str
    available: int


@dataclasses.dataclass(frozen=True)
class Function:
    """A PCI function; a physical one has its virtual ones.

    ``group`` is its IOMMU group, ``total_vfs`` how many virtual functions the
    hardware could have, ``interface`` the network interface that it is (which
    libvirt lists, and complains in its log that it is not real), and
    ``fpga_manager`` the name of what programs it.
    """

    address: str
    vendor: int
    product: int
    device_class: int
    driver: str
    group: int
    numa_node: int = 0
    virtual_functions: tuple['Function', ...] = ()
    total_vfs: int = 0
    mdev_types: tuple[MdevType, ...] = ()
    interface: str | None = None
    fpga_manager: str | None = None

    @property
    def path(self) -> str:
        """Its directory, from the top of the tree."""
        return f'devices/pci{self.address[:7]}/{self.address}'


class Tree:
    """Files and links below a directory, all named from there."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def directory(self, path: str) -> pathlib.Path:
        result = self.root / path
        result.mkdir(parents=True, exist_ok=True)
        return result

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file; who reads it meanwhile sees it old or new."""
        target = self._below(path)
        new = target.with_name(f'.{target.name}.new')
        new.write_bytes(content if isinstance(content, bytes)
                        else f'{content}\n'.encode())
        new.replace(target)

    def link(self, path: str, target: str) -> None:
        """Make a relative link, as those of a sysfs are."""
        link = self._below(path)
        link.symlink_to(os.path.relpath(self.root / target, link.parent))

    def request(self, path: str) -> None:
        """Make a file that the kernel acts upon when it is written.

        It is a pipe: what two writers ask for at once is not lost.
        """
        os.mkfifo(self._below(path), 0o200)

    def _below(self, path: str) -> pathlib.Path:
        result = self.root / path
        result.parent.mkdir(parents=True, exist_ok=True)
        return result


def write(root: pathlib.Path, functions: Iterable[Function]) -> None:
    """Write the tree anew, as a machine has it that just booted."""
    shutil.rmtree(root, ignore_errors=True)
    tree = Tree(root)
    for path in ('block', 'bus/mdev/devices', 'class', 'module'):
        tree.directory(path)
    for function in functions:
        _function(tree, function)
        for index, virtual in enumerate(function.virtual_functions):
            _function(tree, virtual)
            tree.link(f'{function.path}/virtfn{index}', virtual.path)
            tree.link(f'{virtual.path}/physfn', function.path)


def _function(tree: Tree, function: Function) -> None:
    path, address = function.path, function.address
    for name, content in _attributes(function).items():
        tree.write(f'{path}/{name}', content)
    group = f'kernel/iommu_groups/{function.group}'
    driver = f'bus/pci/drivers/{function.driver}'
    tree.link(f'bus/pci/devices/{address}', path)
    tree.link(f'{path}/subsystem', 'bus/pci')
    tree.link(f'{driver}/{address}', path)
    tree.link(f'{path}/driver', driver)
    tree.link(f'{group}/devices/{address}', path)
    tree.link(f'{path}/iommu_group', group)
    _mdev_types(tree, function)
    if function.interface:
        _interface(tree, function, function.interface)
    if function.fpga_manager:
        manager = f'{path}/fpga_manager/{function.fpga_manager}'
        tree.write(f'{manager}/name', f'{function.driver} FPGA manager')
        tree.write(f'{manager}/state', 'operating')
        tree.link(f'class/fpga_manager/{function.fpga_manager}', manager)


def _attributes(function: Function) -> dict[str, str | bytes]:
    ids = f'{function.vendor:04X}:{function.product:04X}'
    result: dict[str, str | bytes] = {
        'config': _configuration_space(function),
        'vendor': f'0x{function.vendor:04x}',
        'device': f'0x{function.product:04x}',
        'class': f'0x{function.device_class:06x}',
        'numa_node': str(function.numa_node),
        'resource': ' '.join(['0x0000000000000000'] * 3),
        'uevent': (
            f'DRIVER={function.driver}\nPCI_CLASS={function.device_class:X}\n'
            f'PCI_ID={ids}\nPCI_SUBSYS_ID=0000:0000\n'
            f'PCI_SLOT_NAME={function.address}\n'
            f'MODALIAS=pci:v{function.vendor:08X}d{function.product:08X}'),
    }
    if function.total_vfs:
        result['sriov_totalvfs'] = str(function.total_vfs)
        result['sriov_numvfs'] = str(len(function.virtual_functions))
    return result


def _configuration_space(function: Function) -> bytes:
    """256 bytes with the ids and one capability, that of PCI Express."""
    space = bytearray(256)
    status_has_capabilities, capabilities, express = 0x10, 0x40, 0x10
    struct.pack_into('<HHHH', space, 0, function.vendor, function.product, 0,
                     status_has_capabilities)
    space[9:12] = function.device_class.to_bytes(3, 'little')
    space[0x34] = capabilities
    struct.pack_into('<BBH', space, capabilities, express, 0, 2)
    return bytes(space)


def _mdev_types(tree: Tree, function: Function) -> None:
    for each in function.mdev_types:
        path = f'{function.path}/mdev_supported_types/{each.name}'
        tree.write(f'{path}/name', each.title)
        tree.write(f'{path}/device_api', 'vfio-pci')
        tree.write(f'{path}/available_instances', str(each.available))
        tree.request(f'{path}/create')
        tree.directory(f'{path}/devices')
    if function.mdev_types:
        tree.link(f'class/mdev_bus/{function.address}', function.path)


def _interface(tree: Tree, function: Function, name: str) -> None:
    path = f'{function.path}/net/{name}'
    last = f'{function.group:02x}'
    tree.write(f'{path}/address', f'52:54:00:00:00:{last}')
    tree.write(f'{path}/operstate', 'down')
    tree.write(f'{path}/uevent', f'INTERFACE={name}\nIFINDEX={function.group}')
    tree.link(f'{path}/subsystem', 'class/net')
    tree.link(f'{path}/device', function.path)
    tree.link(f'class/net/{name}', path)
