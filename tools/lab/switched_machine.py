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

"""A machine of two sockets with a PCI Express switch, for guests that see it.

On node 0 a GPU and a NIC share a switch, and a drive is beside it below the
same root complex. On node 1 another GPU is below a root port.
"""

from lab import hardware

_BRIDGE, _GPU, _ETHERNET, _NVME = 0x060400, 0x030200, 0x020000, 0x010802


def _bridge(
    address: str, group: int, above: hardware.Function | None, numa_node: int
) -> hardware.Function:
    return hardware.Function(
        address,
        0x8086,
        0x347A,
        _BRIDGE,
        'pcieport',
        group=group,
        numa_node=numa_node,
        reset_methods=(),
        bridge='' if above is None else above.path,
    )


PORT = _bridge('0000:10:01.0', 1, None, 0)
UPSTREAM = _bridge('0000:11:00.0', 2, PORT, 0)
DOWNSTREAM = tuple(
    _bridge(f'0000:12:0{slot}.0', 3 + slot, UPSTREAM, 0) for slot in (0, 1)
)
DRIVE_PORT = _bridge('0000:10:02.0', 5, None, 0)
FAR_PORT = _bridge('0000:80:01.0', 6, None, 1)

GPU = hardware.Function(
    '0000:13:00.0',
    0x10DE,
    0x2335,
    _GPU,
    None,
    group=10,
    bridge=DOWNSTREAM[0].path,
)
NIC = hardware.Function(
    '0000:14:00.0',
    0x15B3,
    0x1021,
    _ETHERNET,
    'mlx5_core',
    group=11,
    bridge=DOWNSTREAM[1].path,
)
DRIVE = hardware.Function(
    '0000:15:00.0',
    0x144D,
    0xA824,
    _NVME,
    'nvme',
    group=12,
    bridge=DRIVE_PORT.path,
)
FAR_GPU = hardware.Function(
    '0000:81:00.0',
    0x10DE,
    0x2335,
    _GPU,
    None,
    group=13,
    numa_node=1,
    bridge=FAR_PORT.path,
)

#: What a guest can get.
DEVICES = (GPU, NIC, DRIVE, FAR_GPU)

MACHINE = hardware.Machine(
    (PORT, UPSTREAM, *DOWNSTREAM, DRIVE_PORT, FAR_PORT, *DEVICES)
)
