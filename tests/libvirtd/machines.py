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

"""The machines of the tests: every kind of device, and 148 functions."""

import dataclasses

from lab import hardware
from lab import vital_product_data

_GPU, _DISPLAY, _AUDIO = 0x030200, 0x030000, 0x040300
_BRIDGE, _ACCELERATOR, _CO_PROCESSOR = 0x060400, 0x120000, 0x0B4000
_ETHERNET, _NVME, _TIMER = 0x020000, 0x010802, 0x088000

#: A GPU and its audio function are one IOMMU group, with their bridge.
BRIDGE = hardware.Function(
    '0000:00:01.0',
    0x8086,
    0x347A,
    _BRIDGE,
    'pcieport',
    group=1,
    reset_methods=(),
)
GPU = hardware.Function(
    '0000:01:00.0',
    0x10DE,
    0x2235,
    _DISPLAY,
    'nvidia',
    group=1,
    bridge=BRIDGE.path,
    link=hardware.Link(4, 16, 1, 8),
    product_data=vital_product_data.Product(
        'NVIDIA A40', '900-2G133-0000-000', '1320921012345'
    ),
)
GPU_AUDIO = hardware.Function(
    '0000:01:00.1',
    0x10DE,
    0x1AEF,
    _AUDIO,
    'snd_hda_intel',
    group=1,
    bridge=BRIDGE.path,
    reset_methods=('bus',),
)

#: Nothing else is in its group, and it has no driver.
LONE_GPU = hardware.Function(
    '0000:02:00.0', 0x10DE, 0x20B5, _GPU, None, group=2, numa_node=1
)

#: In one group without being of one card.
CROWDED = tuple(
    hardware.Function(
        f'0000:04:0{slot}.0', 0x1002, 0x740F, _GPU, 'amdgpu', group=4
    )
    for slot in (0, 1)
)

MDEV_GPU = hardware.Function(
    '0000:3b:00.0',
    0x10DE,
    0x1EB8,
    _GPU,
    'nvidia',
    group=10,
    mdev_types=(
        hardware.MdevType('nvidia-230', 'GRID T4-2Q', 8),
        hardware.MdevType('nvidia-231', 'GRID T4-4Q', 4),
        hardware.MdevType('nvidia-232', 'GRID T4-8Q', 2),
    ),
)

#: Its virtual functions are the parents of the mediated devices.
SRIOV_MDEV_GPU = hardware.Function(
    '0000:41:00.0',
    0x10DE,
    0x20F1,
    _GPU,
    'nvidia',
    group=100,
    virtual_functions=hardware.VirtualFunctions(
        16,
        0x20F1,
        'nvidia',
        first_group=101,
        offset=4,
        at_boot=4,
        mdev_types=(
            hardware.MdevType('nvidia-474', 'GRID A100-4C', 3),
            hardware.MdevType('nvidia-475', 'GRID A100-8C', 2),
        ),
    ),
)

#: Its virtual functions are set to be vGPUs, and handed over as they are.
VFIO_GPU = hardware.Function(
    '0000:61:00.0',
    0x10DE,
    0x26B9,
    _GPU,
    'nvidia',
    group=120,
    virtual_functions=hardware.VirtualFunctions(
        32,
        0x26B9,
        'nvidia',
        first_group=121,
        offset=4,
        at_boot=4,
        vgpu_types=(
            hardware.VgpuType(1145, 'NVIDIA L40S-12Q', 4),
            hardware.VgpuType(1147, 'NVIDIA L40S-24Q', 2),
            hardware.VgpuType(1149, 'NVIDIA L40S-48Q', 1),
        ),
    ),
)

INTEL_GPU = hardware.Function(
    '0000:63:00.0',
    0x8086,
    0x56C0,
    _DISPLAY,
    'i915',
    group=160,
    virtual_functions=hardware.VirtualFunctions(
        31, 0x56C0, 'i915', first_group=161
    ),
)

AMD_GPU = hardware.Function(
    '0000:65:00.0',
    0x1002,
    0x73A1,
    _GPU,
    'gim',
    group=200,
    virtual_functions=hardware.VirtualFunctions(
        12, 0x73AE, None, first_group=201, offset=16, at_boot=2
    ),
)

#: As the kernel's Documentation/fpga/dfl.rst draws it; its port has been given
#: to a virtual function.
_FME = 'fpga_region/region0/dfl-fme.0'
_REGION = f'{_FME}/dfl-fme-region.1/fpga_region/region1'
INTEL_FPGA = hardware.Function(
    '0000:86:00.0',
    0x8086,
    0x0B2B,
    _ACCELERATOR,
    'dfl-pci',
    group=220,
    virtual_functions=hardware.VirtualFunctions(
        1,
        0x0B2C,
        'dfl-pci',
        first_group=221,
        files={
            'fpga_region/region2/dfl-port.0/id': '0x0',
            'fpga_region/region2/dfl-port.0/afu_id': (
                '850adcc26ceb4b229722d43375b61c66'
            ),
        },
    ),
    files={
        f'{_FME}/bitstream_id': '0x2010102020201d8',
        f'{_FME}/bitstream_metadata': '0x2200223',
        f'{_FME}/ports_num': '1',
        f'{_FME}/errors/catfatal_errors': '0x0',
        f'{_REGION}/compat_id': '9346116da52d5ca8b06aa9a389ef7c8d',
    },
    classes={
        'fpga_region/region0': 'fpga_region/region0',
        'fpga_region/region1': _REGION,
    },
)

#: A management and a user function.
XILINX_FPGA = (
    hardware.Function(
        '0000:88:00.0',
        0x10EE,
        0x5000,
        _ACCELERATOR,
        'xclmgmt',
        group=230,
        files={
            'rom.m.22020096/VBNV': 'xilinx_u200_gen3x16_xdma_base_2',
            'logic_uuids': '0c5ff5ea80dfe2b9b2b1c7ef4ee2f6a4',
            'interface_uuids': '15fb8da143e78a1d40e9b42d5d6ba1a2',
        },
    ),
    hardware.Function(
        '0000:88:00.1',
        0x10EE,
        0x5001,
        _ACCELERATOR,
        'xocl',
        group=231,
        files={'xclbinuuid': '58c06b8cc8824ac48fe1e9db1cafa1c1'},
    ),
)

REGION_FPGA = hardware.Function(
    '0000:8a:00.0',
    0x1172,
    0x00A7,
    _ACCELERATOR,
    'altera-cvp',
    group=240,
    files={
        'fpga_manager/fpga1/name': 'Altera CvP FPGA Manager',
        'fpga_manager/fpga1/state': 'operating',
        'fpga_region/region8/compat_id': '00000000000000000000000000000008',
    },
    classes={
        'fpga_manager/fpga1': 'fpga_manager/fpga1',
        'fpga_region/region8': 'fpga_region/region8',
    },
)

QAT = hardware.Function(
    '0000:b1:00.0',
    0x8086,
    0x37C8,
    _CO_PROCESSOR,
    'c6xx',
    group=250,
    virtual_functions=hardware.VirtualFunctions(
        16, 0x37C9, 'c6xxvf', first_group=251, offset=8, at_boot=3
    ),
)

NIC = hardware.Function(
    '0000:b3:00.0',
    0x15B3,
    0x101D,
    _ETHERNET,
    'mlx5_core',
    group=270,
    interface='labnic0',
    virtual_functions=hardware.VirtualFunctions(
        8, 0x101E, 'mlx5_core', first_group=271, offset=2, at_boot=2
    ),
)

SSD = hardware.Function(
    '0000:d8:00.0',
    0x144D,
    0xA824,
    _NVME,
    'nvme',
    group=290,
    files={
        'nvme/nvme0/model': 'SAMSUNG MZWLL1T6HAJQ-00005',
        'nvme/nvme0/firmware_rev': 'GPNA9B3Q',
        'nvme/nvme0/serial': 'S4C9NF0M500037',
    },
    classes={'nvme/nvme0': 'nvme/nvme0'},
)

ASCEND = hardware.Function(
    '0000:da:00.0',
    0x19E5,
    0xD801,
    _ACCELERATOR,
    'devdrv_device_driver',
    group=291,
)

TIME_CARD = hardware.Function(
    '0000:dc:00.0',
    0x1D9B,
    0x0400,
    _TIMER,
    'ptp_ocp',
    group=292,
    reset_methods=('bus',),
    files={
        'timecard/ocp0/serialnum': 'fc:c2:3d:2e:d7:c0',
        'timecard/ocp0/gnss_sync': 'SYNC',
        'timecard/ocp0/clock_source': 'PPS',
    },
    classes={'timecard/ocp0': 'timecard/ocp0'},
)

#: No IOMMU sees it.
NO_IOMMU = hardware.Function(
    '0000:de:00.0', 0x144D, 0xA822, _NVME, 'nvme', group=None
)

#: Mediated devices that no PCI function makes: samples/vfio-mdev/mtty.c of
#: the kernel, and Documentation/arch/s390/vfio-ap.rst.
MTTY = hardware.MdevParent(
    'devices/virtual/mtty/mtty',
    'class/mtty',
    (
        hardware.MdevType('mtty-1', 'Single port serial', 24, is_mixed=True),
        hardware.MdevType('mtty-2', 'Dual port serial', 12, is_mixed=True),
    ),
    'vfio-pci',
)
AP_MATRIX = hardware.MdevParent(
    'devices/vfio_ap/matrix',
    'bus/matrix',
    (
        hardware.MdevType(
            'vfio_ap-passthrough', 'VFIO AP Passthrough Device', 65536
        ),
    ),
    'vfio-ap',
)

EVERY_KIND = hardware.Machine(
    (
        BRIDGE,
        GPU,
        GPU_AUDIO,
        LONE_GPU,
        *CROWDED,
        MDEV_GPU,
        SRIOV_MDEV_GPU,
        VFIO_GPU,
        INTEL_GPU,
        AMD_GPU,
        INTEL_FPGA,
        *XILINX_FPGA,
        REGION_FPGA,
        QAT,
        NIC,
        SSD,
        ASCEND,
        TIME_CARD,
        NO_IOMMU,
    ),
    (MTTY, AP_MATRIX),
)

_VFS_OF_CARVED = 36

#: Four cards that are carved into virtual functions, 148 functions of GPUs:
#: on such a host Cyborg offered 148 of them. And one that is whole.
CARVED = tuple(
    hardware.Function(
        f'0000:{bus:02x}:00.0',
        0x10DE,
        0x2235,
        _GPU,
        'nvidia',
        group=1000 + 100 * card,
        numa_node=card // 2,
        virtual_functions=hardware.VirtualFunctions(
            _VFS_OF_CARVED,
            0x2235,
            'nvidia',
            first_group=1001 + 100 * card,
            offset=4,
            at_boot=_VFS_OF_CARVED,
            vgpu_types=(
                hardware.VgpuType(557, 'NVIDIA A40-1B', 32),
                hardware.VgpuType(559, 'NVIDIA A40-2Q', 24),
            ),
        ),
    )
    for card, bus in enumerate((0x21, 0x41, 0x61, 0x81))
)
WHOLE = hardware.Function(
    '0000:a1:00.0', 0x10DE, 0x2235, _GPU, 'nvidia', group=1400, numa_node=1
)

#: The host has booted with one, and computes with another.
CONSOLE = dataclasses.replace(
    WHOLE, address='0000:a2:00.0', group=1401, files={'boot_vga': '1'}
)
COMPUTING = dataclasses.replace(
    WHOLE,
    address='0000:a3:00.0',
    group=1402,
    files={'drm/renderD128/dev': '226:128'},
)

CARVED_CARDS = hardware.Machine((*CARVED, WHOLE, CONSOLE, COMPUTING))
