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


"""The PCI devices of simulated hosts, for Nova's fake libvirt.

Every card is on a bus of its own: first the GPUs, then the FPGAs, then the
QAT cards.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterable
import itertools
import json

from nova.tests.fixtures import libvirt as fakelibvirt

#: The number of vGPUs of each type that a GPU makes, one type at a time.
VGPU_TYPES = {
    fakelibvirt.NVIDIA_11_VGPU_TYPE: 16,
    fakelibvirt.NVIDIA_12_VGPU_TYPE: 8,
}

#: A line of ``[nova_accel] device_spec`` for each kind of card.
GPU_SPEC = json.dumps(
    {
        'vendor_id': '10de',
        'product_id': '13f2',
        'driver': 'mdev',
        'mdev_type': fakelibvirt.NVIDIA_11_VGPU_TYPE,
    }
)
#: :class:`nova_accel.testing.fake_fpga.Installed` installs its driver.
FPGA_SPEC = json.dumps(
    {'vendor_id': '8086', 'product_id': '09c4', 'driver': 'fake'}
)
QAT_SPEC = json.dumps(
    {'vendor_id': '8086', 'product_id': '37c9', 'driver': 'pci'}
)
DEVICE_SPEC = (GPU_SPEC, FPGA_SPEC, QAT_SPEC)


def pci_info(
    *,
    gpus: int = 1,
    fpgas: int = 1,
    fpga_vfs: int = 2,
    qats: int = 1,
    qat_vfs: int = 8,
    qat_ids: tuple[str, str] = ('37c8', '37c9'),
    bus: int = 0x81,
    numa_node: int = 0,
) -> fakelibvirt.HostPCIDevicesInfo:
    """The PCI devices of a host.

    :param fpga_vfs: the regions of each FPGA card
    :param qat_vfs: the virtual functions of each QAT card
    :param qat_ids: the products of such a card and its virtual functions;
        those of other cards of Intel make it one of them
    :param bus: the bus of the first card; a second host may have another
    """
    info = fakelibvirt.HostPCIDevicesInfo(num_pci=0, num_pfs=0, num_vfs=0)
    buses = itertools.count(bus)
    for card in itertools.islice(buses, gpus):
        add_gpu(info, card, numa_node)
    for card in itertools.islice(buses, fpgas):
        _add_sriov(
            info,
            card,
            numa_node,
            fpga_vfs,
            prod_ids=('09c4', '09c5'),
            prod_name='PAC with Intel Arria 10 GX FPGA',
            driver_name='dfl-pci',
        )
    for card in itertools.islice(buses, qats):
        _add_sriov(
            info,
            card,
            numa_node,
            qat_vfs,
            prod_ids=qat_ids,
            prod_name='C620 Series Chipset Family QAT',
            driver_name='c6xx',
        )
    return info


def add_gpu(
    info: fakelibvirt.HostPCIDevicesInfo, bus: int, numa_node: int = 0
) -> None:
    """Add a GPU at ``0000:<bus>:00.0``."""
    info.add_device(
        dev_type='MDEV_TYPES',
        bus=bus,
        slot=0,
        function=0,
        iommu_group=_iommu_group(bus, 0),
        numa_node=numa_node,
        multiple_gpu_types=True,
        vend_id='10de',
        vend_name='NVIDIA Corporation',
        prod_id='13f2',
        prod_name='GM204GL [Tesla M60]',
        driver_name='nvidia',
    )


def _add_sriov(
    info: fakelibvirt.HostPCIDevicesInfo,
    bus: int,
    numa_node: int,
    vfs: int,
    prod_ids: Iterable[str],
    prod_name: str,
    driver_name: str,
) -> None:
    """Add a physical function at ``<bus>:00.0`` and its virtual ones."""
    card, virtual = prod_ids
    names = {
        'vend_id': '8086',
        'vend_name': 'Intel Corporation',
        'numa_node': numa_node,
    }
    info.add_device(
        dev_type='PF',
        bus=bus,
        slot=0,
        function=0,
        vf_ratio=vfs,
        iommu_group=_iommu_group(bus, 0),
        prod_id=card,
        prod_name=prod_name,
        driver_name=driver_name,
        **names,
    )
    for number in range(1, vfs + 1):
        slot, function = divmod(number, 8)
        # Nova's fake subtracts an eighth of vf_ratio from the slot to find
        # the physical function. That is right for the last slot only.
        info.add_device(
            dev_type='VF',
            bus=bus,
            slot=slot,
            function=function,
            vf_ratio=8 * slot,
            parent=(bus, 0, 0),
            iommu_group=_iommu_group(bus, number),
            prod_id=virtual,
            prod_name=f'{prod_name} Virtual Function',
            driver_name=f'{driver_name}vf',
            **names,
        )


def _iommu_group(bus: int, number: int) -> int:
    return bus * 256 + number
