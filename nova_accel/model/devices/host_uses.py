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

"""The programs that keep devices of a host busy, and their cures.

This is the one list of it: the reasons of faults and the table of the manual
(``admin/attachable-devices.rst``) have its texts.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Use(NamedTuple):
    """A kind of use; ``cure`` ends it."""

    what: str
    cure: str

    def text(self, seen: str) -> str:
        """:param seen: what was seen on this host"""
        return f'{seen}; to free it, {self.cure}'


DISPLAY = Use(
    'The display that the host has booted with, or its console',
    'have the firmware boot with another display, or bind it to vfio-pci '
    'before its driver, with the kernel parameter vfio-pci.ids',
)
FIRMWARE = Use(
    'A frame buffer of the firmware (simpledrm, efifb, vesafb), also of a GPU '
    'that is bound to vfio-pci',
    'add the kernel parameter initcall_blacklist=sysfb_init (before Linux '
    '5.14: video=efifb:off,vesafb:off), and reboot',
)
DISK = Use(
    'A disk that is mounted, swap, or a part of something else',
    'unmount it, or take it out of what it is a part of',
)
INTERFACE = Use(
    'A network interface that has an address, or is a part of something else',
    'remove its address and routes, or take it out of what it is a part of',
)
COMPUTING = Use(
    'A process that computes with a GPU of AMD, or with a partition of it',
    'end the process',
)
PROCESS = Use(
    'Any other process with a device node open',
    'end the process, or the service that starts it',
)

_PERSISTENCE = Use(
    'nvidia-persistenced, or persistence mode: an unbind under drivers 595 '
    'and 610 never ends while a GPU is open',
    'run systemctl disable --now nvidia-persistenced, and nvidia-smi -pm 0',
)
_DCGM = Use(
    'DCGM, or its exporter',
    'run systemctl disable --now nvidia-dcgm dcgm-exporter, and monitor in '
    'the guests',
)
_FABRIC = Use(
    'Fabric Manager with FABRIC_MODE=0',
    'set FABRIC_MODE=1 in fabricmanager.cfg, and restart it',
)
_SUBNET = Use(
    'NVLink Subnet Manager (nvlsm), or another subnet manager',
    'remove the function from device_spec: it manages the NVSwitches; stop '
    'opensm if it is a NIC',
)
_POWER = Use(
    'nvidia-powerd',
    'run systemctl disable --now nvidia-powerd',
)
_SMI = Use(
    "A vendor's tool that watches (nvidia-smi -l, rocm-smi, xpu-smi, nvtop)",
    'end it; it is often called by an agent that monitors',
)
_DESKTOP = Use(
    'A graphical desktop',
    'run systemctl set-default multi-user.target, and reboot',
)
_AMD = Use(
    "AMD's exporter of metrics (gpuagent)",
    'run systemctl disable --now amd-metrics-exporter gpuagent',
)
_INTEL = Use(
    'Intel XPU Manager (xpumd)',
    'run systemctl disable --now xpum',
)
_ASCEND = Use(
    "Huawei's npu-exporter",
    'stop npu-exporter',
)
_GAUDI = Use(
    'The exporter of metrics of Intel Gaudi',
    'stop habanalabs-exporter',
)
_STORAGE = Use(
    'Storage over RDMA (iSER, NVMe over fabrics, SPDK, Ceph, Lustre)',
    'stop the service of the storage, or use another NIC for it',
)

#: The first letters of a command, of which the kernel keeps 15 -> its kind.
_COMMANDS = {
    'nvidia-persiste': _PERSISTENCE,
    'nv-hostengine': _DCGM,
    'dcgm-exporter': _DCGM,
    'dcgmi': _DCGM,
    'nv-fabricmanage': _FABRIC,
    'fabricmanager': _FABRIC,
    'nvlsm': _SUBNET,
    'opensm': _SUBNET,
    'nvidia-powerd': _POWER,
    'nvidia-smi': _SMI,
    'rocm-smi': _SMI,
    'amd-smi': _SMI,
    'xpu-smi': _SMI,
    'hl-smi': _SMI,
    'npu-smi': _SMI,
    'nvtop': _SMI,
    'Xorg': _DESKTOP,
    'Xwayland': _DESKTOP,
    'gnome-shell': _DESKTOP,
    'kwin_': _DESKTOP,
    'gpuagent': _AMD,
    'amd-metrics': _AMD,
    'xpumd': _INTEL,
    'npu-exporter': _ASCEND,
    'habana': _GAUDI,
    'nvmf_tgt': _STORAGE,
    'spdk': _STORAGE,
    'iscsid': _STORAGE,
    'tgtd': _STORAGE,
    'ceph-': _STORAGE,
}


def of_command(command: str) -> Use:
    """The kind of use by a process with this command."""
    return next(
        (
            use
            for beginning, use in _COMMANDS.items()
            if command.startswith(beginning)
        ),
        PROCESS,
    )


def every() -> Iterator[Use]:
    """All kinds, each once, in the order of the manual."""
    yield from (DISPLAY, FIRMWARE, DISK, INTERFACE, COMPUTING)
    yield from dict.fromkeys(_COMMANDS.values())
    yield PROCESS
