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

"""The machines' hardware, as QEMU and as they see it.

Each function is alone in its IOMMU group. The virtual functions are made by
nova-compute after each boot, two of each physical one.
"""

from collections.abc import Mapping
import pathlib
import uuid

from lab import settings
from lab.device_vm import image

#: NVMe virtual functions have the ids of the physical one, and are without a
#: driver; those of igb have igbvf.
NVME = '1b36:0010'
IGB_VF = '8086:10ca'
E1000E = '8086:10d3'
#: A controller with a namespace.
DRIVE = '8086:5845'
#: The software FPGA.
FPGA = '1b36:0005'

MDEV_TYPES = ('labgpu-1', 'labgpu-2')
#: What each of the guests with a mediated device sees.
MDEV = '4348:3253'
E1000E_ADDRESSES = ('0000:00:0a.0', '0000:00:0b.0')
#: Takes the number of a function of bus 0 whose config space then reads all
#: ones, -1 for none.
LOST = '/sys/module/labgpu/parameters/lost'
#: Address of an e1000e -> its number.
LOST_E1000E = {
    address: slot << 3
    for address, slot in zip(E1000E_ADDRESSES, (0x0A, 0x0B), strict=True)
}
IGB_VF_ADDRESSES = ('0000:01:10.0', '0000:01:10.2')
NVME_ADDRESS = '0000:02:00.0'
GPU_ADDRESS = '0000:00:08.0'
FPGA_ADDRESS = '0000:00:09.0'

#: A mediated device that somebody else has made, below a parent that is no
#: PCI function. It takes one of the units that all parents share.
OTHER_MDEV = '0d9c2a57-61f3-4e0a-9c41-2f6b7e3d8a10'

DRIVE_BYTES = 16 << 20

MEMORY_MB = 6144

_NAMESPACE = uuid.UUID('6c61622d-766d-4000-8000-6465766963e5')


def command() -> list[str]:
    """QEMU as the tree has it, on any C library of this machine."""
    root = image.TREE
    libraries = 'lib/x86_64-linux-gnu'
    return [
        str(root / 'lib64/ld-linux-x86-64.so.2'),
        '--library-path',
        f'{root / libraries}:{root / "usr" / libraries}',
        str(root / 'usr/bin/qemu-system-x86_64'),
        *(
            part
            for directory in ('qemu', 'seabios')
            for part in ('-L', str(root / 'usr/share' / directory))
        ),
        '-L',
        str(root / 'usr/lib/ipxe/qemu'),
    ]


def environment() -> dict[str, str]:
    return {
        'QEMU_MODULE_DIR': str(image.TREE / 'usr/lib/x86_64-linux-gnu/qemu')
    }


def arguments(
    name: str,
    files: image.Files,
    state: pathlib.Path,
    drive: pathlib.Path,
    directories: Mapping[str, pathlib.Path],
    agent_port: int,
) -> list[str]:
    """QEMU's arguments.

    :param name: what the machine calls itself
    :param state: the image of the disk that outlives boots
    :param drive: what is on the drive that is given to guests
    :param directories: name in the machine's root -> directory
    :param agent_port: a port of this machine's loopback
    """
    given = _machine(name)
    given += _boot(name, files, directories['log'] / 'console.log')
    given += [
        '-netdev',
        f'user,id=outside,hostfwd=tcp:127.0.0.1:{agent_port}-10.0.2.15:7',
        '-device',
        'virtio-net-pci,netdev=outside,addr=0x6,romfile=',
    ]
    given += _disk('image', 0x3, files.disk, 'readonly=on')
    given += _disk('state', 0x4, state, 'cache=unsafe')
    given += _disk('packages', 0x5, files.packages, 'readonly=on')
    for slot, (tag, path) in enumerate(directories.items(), 0x12):
        given += _directory(tag, path, slot)
    return given + _devices() + _drive(drive)


def _machine(name: str) -> list[str]:
    """The machine without devices."""
    return [
        '-name',
        name,
        '-uuid',
        str(uuid.uuid5(_NAMESPACE, name)),
        '-nodefaults',
        '-display',
        'none',
        '-no-reboot',
        '-machine',
        'q35',
        '-accel',
        'tcg,thread=multi',
        '-cpu',
        'max',
        # With two, QEMU's emulation of KVM makes one stand still in the end.
        '-smp',
        '1',
        '-m',
        str(MEMORY_MB),
        '-device',
        'intel-iommu,intremap=on,caching-mode=on',
    ]


def _boot(name: str, files: image.Files, console: pathlib.Path) -> list[str]:
    """The kernel that the machine boots, and the log of its console."""
    ports = ','.join(str(port) for port in settings.PORTS.services)
    return [
        '-serial',
        f'file:{console}',
        '-kernel',
        str(files.kernel),
        '-initrd',
        str(files.initrd),
        '-append',
        'console=ttyS0 quiet intel_iommu=on iommu=pt '
        'mitigations=off random.trust_cpu=on '
        # A timer that QEMU loses in KVM is not the last one.
        'nohz=off highres=off '
        'sysctl.kernel.panic_on_rcu_stall=1 '
        f'lab_host={name} lab_ports={ports} '
        f'lab_mdev={OTHER_MDEV}',
    ]


def _disk(name: str, slot: int, path: pathlib.Path, option: str) -> list[str]:
    return [
        '-drive',
        f'id={name},file={path},format=raw,if=none,{option}',
        '-device',
        f'virtio-blk-pci,drive={name},addr={slot:#x}',
    ]


def _directory(tag: str, path: pathlib.Path, slot: int) -> list[str]:
    return [
        '-fsdev',
        f'local,id={tag},path={path},security_model=none',
        '-device',
        f'virtio-9p-pci,fsdev={tag},mount_tag={tag},addr={slot:#x}',
    ]


def _devices() -> list[str]:
    """What is given to guests."""
    given = ['-device', 'edu,addr=0x8', '-device', 'pci-testdev,addr=0x9']
    for slot in ('0a', '0b'):
        given += [
            '-device',
            f'e1000e,addr=0x{slot},mac=52:54:00:00:00:{slot},romfile=',
        ]
    return [
        *given,
        '-device',
        'pcie-root-port,id=port1,chassis=1,addr=0x10',
        '-device',
        'igb,bus=port1,mac=52:54:00:00:00:10,romfile=',
        '-device',
        'pcie-root-port,id=port2,chassis=2,addr=0x11',
        '-device',
        'nvme-subsys,id=subsystem',
        '-device',
        'nvme,bus=port2,serial=LAB,subsys=subsystem,'
        'sriov_max_vfs=2,sriov_vq_flexible=4,sriov_vi_flexible=2,'
        'max_ioqpairs=8,msix_qsize=16',
    ]


def _drive(path: pathlib.Path) -> list[str]:
    return [
        '-drive',
        f'id=namespace,file={path},format=raw,if=none,cache=writethrough',
        '-device',
        'nvme,id=tenants,addr=0xc,serial=DRIVE,use-intel-id=on',
        '-device',
        'nvme-ns,bus=tenants,drive=namespace',
    ]
