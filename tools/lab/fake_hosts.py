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

from lab import hardware
from lab import libvirtd

GPU = hardware.Function(
    '0000:3b:00.0',
    0x10DE,
    0x20F1,
    0x030200,
    'nvidia',
    group=10,
    mdev_types=(
        hardware.MdevType('nvidia-474', 'GRID A100-2C', 4),
        hardware.MdevType('nvidia-475', 'GRID A100-4C', 2),
    ),
)

NIC = hardware.Function(
    '0000:5e:00.0',
    0x8086,
    0x1572,
    0x020000,
    'i40e',
    group=20,
    interface='labnic0',
    virtual_functions=hardware.VirtualFunctions(
        64, 0x154C, 'iavf', first_group=21, offset=16, at_boot=2
    ),
)

FPGA = hardware.Function(
    '0000:86:00.0',
    0x10EE,
    0x5000,
    0x120000,
    'xclmgmt',
    group=30,
    files={
        'fpga_manager/fpga0/name': 'xclmgmt FPGA manager',
        'fpga_manager/fpga0/state': 'operating',
    },
    classes={'fpga_manager/fpga0': 'fpga_manager/fpga0'},
)

QAT = hardware.Function(
    '0000:b1:00.0',
    0x8086,
    0x37C8,
    0x0B4000,
    'c6xx',
    group=40,
    virtual_functions=hardware.VirtualFunctions(
        16, 0x37C9, 'c6xxvf', first_group=41, offset=8, at_boot=2
    ),
)

SSD = hardware.Function(
    '0000:d8:00.0', 0x144D, 0xA824, 0x010802, 'nvme', group=50
)

MACHINES = {
    'lab-a': hardware.Machine((GPU, NIC, FPGA, QAT)),
    'lab-b': hardware.Machine((GPU, NIC, FPGA, QAT, SSD)),
}


def host(name: str) -> libvirtd.Libvirtd:
    """:param name: one of :data:`MACHINES`"""
    return libvirtd.Libvirtd(name, MACHINES[name])
