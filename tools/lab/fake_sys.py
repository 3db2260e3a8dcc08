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

"""A hand-written /sys, for libvirt and Nova to read.

:func:`write` makes the tree of a :class:`lab.hardware.Machine`. As /sys it is
shown by :mod:`lab.fake_kernel`, which acts upon what is written there, in a
mount namespace, see :mod:`lab.namespace`.
"""

from collections.abc import Iterable
import os
import pathlib
import pickle
import shutil
import struct

from lab import hardware
from lab import namespace

#: Below the tree and not shown: the machine, and which files fail.
MACHINE, FAULTS = '.machine', '.faults'

#: The driver that hands functions to guests, and that nothing has at boot.
VFIO = 'vfio-pci'

#: Speeds of a link by the generation of PCI Express.
_SPEEDS = ('', '2.5', '5.0', '8.0', '16.0', '32.0', '64.0')


class Tree:
    """Files and links below a directory, all named from there."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def directory(self, path: str) -> pathlib.Path:
        result = self.root / path
        result.mkdir(parents=True, exist_ok=True)
        return result

    def write(
        self, path: str, content: str | bytes, mode: int = 0o444
    ) -> None:
        """Write a file; who reads it meanwhile sees it old or new."""
        target = self._below(path)
        new = target.with_name(f'.{target.name}.new')
        new.write_bytes(
            content if isinstance(content, bytes) else f'{content}\n'.encode()
        )
        new.chmod(mode)
        new.replace(target)

    def link(self, path: str, target: str) -> None:
        """Make a relative link, as those of a sysfs are."""
        link = self._below(path)
        link.symlink_to(os.path.relpath(self.root / target, link.parent))

    def request(self, path: str, value: str | bytes | None = None) -> None:
        """Make a file that the kernel acts upon when it is written.

        :param value: what is read of it, if it can be read
        """
        if value is None:
            self.write(path, b'', 0o200)
        else:
            self.write(path, value, 0o644)

    def read(self, path: str) -> str:
        """What is in a file, without the white space around it."""
        return (self.root / path).read_text().strip()

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a directory with all that is in it."""
        target = self.root / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def _below(self, path: str) -> pathlib.Path:
        result = self.root / path
        result.parent.mkdir(parents=True, exist_ok=True)
        return result


def write(root: pathlib.Path, machine: hardware.Machine) -> None:
    """Write the tree anew, as a machine has it that just booted."""
    shutil.rmtree(root, ignore_errors=True)
    tree = Tree(root)
    for path in (
        'block',
        'bus/mdev/devices',
        'class',
        'module',
        FAULTS,
        *namespace.REAL,
    ):
        tree.directory(path)
    (root / MACHINE).write_bytes(pickle.dumps(machine))
    tree.request('bus/pci/drivers_probe')
    tree.request('bus/pci/rescan')
    add_driver(tree, VFIO)
    for function in machine.functions:
        add_function(tree, function)
        for index, virtual in enumerate(function.at_boot()):
            add_virtual_function(tree, virtual, index)
    for parent in machine.mdev_parents:
        tree.write(f'{parent.path}/uevent', '')
        tree.link(f'{parent.path}/subsystem', parent.subsystem)
        kind = parent.subsystem
        tree.link(
            f'{kind}/{"devices/" * kind.startswith("bus/")}'
            f'{_name(parent.path)}',
            parent.path,
        )
        add_mdev_types(tree, parent.path, parent.mdev_types, parent.device_api)


def read_machine(root: pathlib.Path) -> hardware.Machine:
    """The machine whose tree it is."""
    # No one but write() has written it.
    machine: hardware.Machine = pickle.loads(  # noqa: S301
        (root / MACHINE).read_bytes()
    )
    return machine


def add_driver(tree: Tree, driver: str) -> None:
    """Load a driver of PCI functions, unless it is there."""
    path = f'bus/pci/drivers/{driver}'
    if (tree.root / path).exists():
        return
    tree.directory(f'module/{driver.replace("-", "_")}')
    for name in ('bind', 'unbind', 'new_id', 'remove_id'):
        tree.request(f'{path}/{name}')


def add_virtual_function(
    tree: Tree, virtual: hardware.Function, index: int, probe: bool = True
) -> None:
    """Add one that its card links to."""
    add_function(tree, virtual, probe)
    tree.link(f'{virtual.card}/virtfn{index}', virtual.path)
    tree.link(f'{virtual.path}/physfn', virtual.card)


def add_function(
    tree: Tree, function: hardware.Function, probe: bool = True
) -> None:
    """Add a PCI function.

    :param probe: bind its driver
    """
    path, address = function.path, function.address
    for name, content in _attributes(function).items():
        tree.write(f'{path}/{name}', content)
    tree.request(f'{path}/config', _configuration_space(function))
    tree.link(f'{path}/subsystem', 'bus/pci')
    tree.request(f'{path}/driver_override', '(null)')
    tree.request(f'{path}/remove')
    if function.reset_methods:
        tree.request(f'{path}/reset')
    if function.virtual_functions is not None:
        tree.request(
            f'{path}/sriov_numvfs', str(function.virtual_functions.at_boot)
        )
        tree.request(f'{path}/sriov_drivers_autoprobe', '1')
    if function.group is not None:
        group = f'kernel/iommu_groups/{function.group}'
        tree.write(f'{group}/type', 'DMA-FQ')
        tree.link(f'{group}/devices/{address}', path)
        tree.link(f'{path}/iommu_group', group)
    if probe and function.driver is not None:
        bind(tree, function, function.driver)
    # Last: who finds it there finds all of it.
    tree.link(f'bus/pci/devices/{address}', path)


def remove_function(
    tree: Tree, function: hardware.Function, driver: str | None
) -> None:
    """Take a function away that has no virtual ones and no mdevs.

    :param driver: what it is bound to
    """
    tree.remove(f'bus/pci/devices/{function.address}')
    if driver is not None:
        unbind(tree, function, driver)
    if function.group is not None:
        group = f'kernel/iommu_groups/{function.group}'
        tree.remove(f'{group}/devices/{function.address}')
        if not any((tree.root / group / 'devices').iterdir()):
            tree.remove(group)
    tree.remove(function.path)


def bind(tree: Tree, function: hardware.Function, driver: str) -> None:
    """Show what the driver makes of the function."""
    path = function.path
    add_driver(tree, driver)
    tree.link(f'bus/pci/drivers/{driver}/{function.address}', path)
    tree.link(f'{path}/driver', f'bus/pci/drivers/{driver}')
    _uevent(tree, function, driver)
    if driver != function.driver:
        return
    for name, content in function.files.items():
        tree.write(f'{path}/{name}', content)
    for name, place in function.classes.items():
        tree.link(f'class/{name}', f'{path}/{place}')
    if function.mdev_types:
        add_mdev_types(tree, path, function.mdev_types)
    if function.vgpu_types:
        tree.request(f'{path}/nvidia/current_vgpu_type', '0')
        write_creatable(tree, function, function.vgpu_types)
    if function.interface:
        _interface(tree, function, function.interface)


def unbind(tree: Tree, function: hardware.Function, driver: str) -> None:
    """Take away what the driver made of the function."""
    path = function.path
    tree.remove(f'{path}/driver')
    tree.remove(f'bus/pci/drivers/{driver}/{function.address}')
    _uevent(tree, function, None)
    if driver != function.driver:
        return
    for name in {'mdev_supported_types', 'net', 'nvidia'}.union(
        each.split('/')[0] for each in function.files
    ):
        tree.remove(f'{path}/{name}')
    tree.remove(f'class/mdev_bus/{function.address}')
    tree.remove(f'class/net/{function.interface}')
    for name in function.classes:
        tree.remove(f'class/{name}')


def add_mdev_types(
    tree: Tree,
    parent: str,
    types: Iterable[hardware.MdevType],
    device_api: str = 'vfio-pci',
) -> None:
    for each in types:
        path = f'{parent}/mdev_supported_types/{each.name}'
        tree.write(f'{path}/name', each.title)
        tree.write(f'{path}/device_api', device_api)
        tree.write(f'{path}/available_instances', str(each.available))
        if each.name.startswith('nvidia-'):
            tree.write(
                f'{path}/description',
                f'num_heads=1, max_instance={each.available}',
            )
        tree.request(f'{path}/create')
        tree.directory(f'{path}/devices')
    tree.link(f'class/mdev_bus/{_name(parent)}', parent)


def write_creatable(
    tree: Tree, function: hardware.Function, types: Iterable[hardware.VgpuType]
) -> None:
    """Write which types a virtual function can be set to be.

    The form is that of NVIDIA's driver, see "Virtual GPU Software User
    Guide", creating a vGPU on a Linux with a vendor-specific VFIO framework.
    """
    tree.write(
        f'{function.path}/nvidia/creatable_vgpu_types',
        '\n'.join(
            [
                'ID    : vGPU Name',
                *(f'{each.number:<5} : {each.name}' for each in types),
            ]
        ),
    )


def _attributes(function: hardware.Function) -> dict[str, str | bytes]:
    result: dict[str, str | bytes] = {
        'vendor': f'0x{function.vendor:04x}',
        'device': f'0x{function.product:04x}',
        'subsystem_vendor': '0x0000',
        'subsystem_device': '0x0000',
        'revision': '0x00',
        'class': f'0x{function.device_class:06x}',
        'numa_node': str(function.numa_node),
        'resource': ' '.join(['0x0000000000000000'] * 3),
        'uevent': uevent(function, None),
    }
    virtual = function.virtual_functions
    if virtual is not None:
        result['sriov_totalvfs'] = str(virtual.total)
        result['sriov_offset'] = str(virtual.offset)
        result['sriov_stride'] = '1'
        result['sriov_vf_device'] = f'{virtual.product:x}'
    if function.reset_methods:
        result['reset_method'] = ' '.join(function.reset_methods)
    if function.link is not None:
        generation, width = function.link.now
        for kind, speed, lanes in (
            ('max', function.link.generation, function.link.width),
            ('current', generation, width),
        ):
            result[f'{kind}_link_speed'] = f'{_SPEEDS[speed]} GT/s PCIe'
            result[f'{kind}_link_width'] = str(lanes)
    if function.product_data is not None:
        result['vpd'] = function.product_data.encode()
    return result


def uevent(function: hardware.Function, driver: str | None) -> str:
    """What the kernel tells of a function, a line for each property."""
    lines = [f'DRIVER={driver}'] if driver else []
    return '\n'.join(
        [
            *lines,
            f'PCI_CLASS={function.device_class:X}',
            f'PCI_ID={function.vendor:04X}:{function.product:04X}',
            'PCI_SUBSYS_ID=0000:0000',
            f'PCI_SLOT_NAME={function.address}',
            f'MODALIAS=pci:v{function.vendor:08X}d{function.product:08X}',
        ]
    )


def _uevent(
    tree: Tree, function: hardware.Function, driver: str | None
) -> None:
    tree.write(f'{function.path}/uevent', uevent(function, driver))


def _configuration_space(function: hardware.Function) -> bytes:
    """256 bytes with the ids and one capability, that of PCI Express."""
    space = bytearray(256)
    status_has_capabilities, capabilities, express = 0x10, 0x40, 0x10
    struct.pack_into(
        '<HHHH',
        space,
        0,
        function.vendor,
        function.product,
        0,
        status_has_capabilities,
    )
    space[9:12] = function.device_class.to_bytes(3, 'little')
    space[0x0E] = int(function.is_bridge)
    space[0x34] = capabilities
    root_port, version = 4, 2
    struct.pack_into(
        '<BBH',
        space,
        capabilities,
        express,
        0,
        version | (root_port << 4 if function.is_bridge else 0),
    )
    can_reset = 1 << 28 if 'flr' in function.reset_methods else 0
    struct.pack_into('<I', space, capabilities + 4, can_reset)
    if function.link is not None:
        struct.pack_into(
            '<I',
            space,
            capabilities + 0x0C,
            function.link.generation | function.link.width << 4,
        )
        generation, width = function.link.now
        struct.pack_into(
            '<H', space, capabilities + 0x12, generation | width << 4
        )
    return bytes(space)


def _interface(tree: Tree, function: hardware.Function, name: str) -> None:
    path = f'{function.path}/net/{name}'
    last = f'{(function.group or 0) & 0xFF:02x}'
    tree.write(f'{path}/address', f'52:54:00:00:00:{last}')
    tree.write(f'{path}/operstate', 'down')
    tree.write(
        f'{path}/uevent', f'INTERFACE={name}\nIFINDEX={function.group or 0}'
    )
    tree.link(f'{path}/subsystem', 'class/net')
    tree.link(f'{path}/device', function.path)
    tree.link(f'class/net/{name}', path)


def _name(path: str) -> str:
    return path.rpartition('/')[2]
