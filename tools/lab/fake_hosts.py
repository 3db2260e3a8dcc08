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

"""The two compute hosts with a hand-written /sys, and their devices.

lab-a and lab-b have the same, and lab-b an SSD in addition: what asks for an
SSD can run there only.
"""


from lab import fake_sys
from lab import libvirtd
from lab import settings

GPU = fake_sys.Function(
    '0000:3b:00.0', 0x10de, 0x20f1, 0x030200, 'nvidia', group=10,
    mdev_types=(fake_sys.MdevType('nvidia-474', 'GRID A100-2C', 4),
                fake_sys.MdevType('nvidia-475', 'GRID A100-4C', 2)))

NIC_VFS = tuple(
    fake_sys.Function(
        f'0000:5e:02.{index}', 0x8086, 0x154c, 0x020000, 'iavf',
        group=21 + index, interface=f'labnic0v{index}')
    for index in range(2))

NIC = fake_sys.Function(
    '0000:5e:00.0', 0x8086, 0x1572, 0x020000, 'i40e', group=20,
    interface='labnic0', total_vfs=64, virtual_functions=NIC_VFS)

FPGA = fake_sys.Function(
    '0000:86:00.0', 0x10ee, 0x5000, 0x120000, 'xclmgmt', group=30,
    fpga_manager='fpga0')

QAT_VFS = tuple(
    fake_sys.Function(
        f'0000:b1:01.{index}', 0x8086, 0x37c9, 0x0b4000, 'c6xxvf',
        group=41 + index)
    for index in range(2))

QAT = fake_sys.Function(
    '0000:b1:00.0', 0x8086, 0x37c8, 0x0b4000, 'c6xx', group=40,
    total_vfs=16, virtual_functions=QAT_VFS)

SSD = fake_sys.Function(
    '0000:d8:00.0', 0x144d, 0xa824, 0x010802, 'nvme', group=50)

DEVICES: dict[str, tuple[fake_sys.Function, ...]] = {
    'lab-a': (GPU, NIC, FPGA, QAT),
    'lab-b': (GPU, NIC, FPGA, QAT, SSD),
}


def host(name: str) -> libvirtd.Libvirtd:
    """:param name: one of :data:`DEVICES`"""
    return libvirtd.Libvirtd(name, settings.STATE / 'hosts' / name / 'sys')


def start(name: str) -> libvirtd.Libvirtd:
    """Have the host run; one that was off has all its devices free."""
    result = host(name)
    if not result.booted and result.sysfs is not None:
        fake_sys.write(result.sysfs, DEVICES[name])
    result.start()
    return result
