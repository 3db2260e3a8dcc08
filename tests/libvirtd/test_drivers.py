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


from typing import NamedTuple

from lab import hardware
from libvirtd import base
from libvirtd import machines


class Kind(NamedTuple):
    """A line for a device of a kind, and what comes of it.

    ``units`` are the functions of each unit, ``attributes`` some of the
    device's.
    """

    function: hardware.Function
    keys: dict
    type: str
    units: tuple = ()
    attributes: dict = {}


def virtual(card, count):
    return tuple((card.virtual(index),) for index in range(count))


KINDS = (
    Kind(
        machines.GPU,
        {'driver': 'nvidia_gpu'},
        'GPU',
        ((machines.GPU, machines.GPU_AUDIO),),
    ),
    Kind(
        machines.LONE_GPU,
        {'driver': 'nvidia_gpu'},
        'GPU',
        ((machines.LONE_GPU,),),
    ),
    Kind(
        machines.MDEV_GPU,
        {'driver': 'nvidia_vgpu', 'mdev_type': 'nvidia-231'},
        'VGPU',
    ),
    Kind(
        machines.SRIOV_MDEV_GPU,
        {'driver': 'nvidia_vgpu', 'mdev_type': 'nvidia-474'},
        'VGPU',
    ),
    Kind(
        machines.VFIO_GPU,
        {'driver': 'nvidia_vfio', 'vgpu_types': {'1147': 2}},
        'VGPU',
        virtual(machines.VFIO_GPU, 2),
    ),
    Kind(
        machines.INTEL_GPU,
        {'driver': 'gpu_sriov', 'sriov_numvfs': 3},
        'VGPU',
        virtual(machines.INTEL_GPU, 3),
    ),
    Kind(
        machines.AMD_GPU,
        {'driver': 'gpu_sriov'},
        'VGPU',
        virtual(machines.AMD_GPU, 2),
    ),
    Kind(
        machines.INTEL_FPGA,
        {'driver': 'fpga_dfl', 'sriov_numvfs': 1},
        'FPGA',
        virtual(machines.INTEL_FPGA, 1),
        {'bitstream_id': '0x2010102020201d8', 'ports_num': '1'},
    ),
    Kind(
        machines.XILINX_FPGA[0],
        {'driver': 'xrt'},
        'FPGA',
        ((machines.XILINX_FPGA[1],),),
        {'VBNV': 'xilinx_u200_gen3x16_xdma_base_2'},
    ),
    Kind(
        machines.REGION_FPGA,
        {'driver': 'fpga_region', 'whole': True},
        'FPGA',
        ((machines.REGION_FPGA,),),
        {'manager': 'Altera CvP FPGA Manager'},
    ),
    Kind(
        machines.QAT.virtual(2),
        {'driver': 'qat'},
        'QAT',
        ((machines.QAT.virtual(2),),),
    ),
    Kind(
        machines.NIC.virtual(1),
        {'driver': 'nic', 'physical_network': 'physnet1'},
        'NIC',
        ((machines.NIC.virtual(1),),),
        {'uplink': 'labnic0'},
    ),
    Kind(
        machines.SSD,
        {'driver': 'nvme'},
        'SSD',
        ((machines.SSD,),),
        {
            'model': 'SAMSUNG MZWLL1T6HAJQ-00005',
            'firmware_rev': 'GPNA9B3Q',
            'serial': 'S4C9NF0M500037',
        },
    ),
    Kind(
        machines.ASCEND, {'driver': 'ascend'}, 'AICHIP', ((machines.ASCEND,),)
    ),
    Kind(
        machines.TIME_CARD,
        {'driver': 'time_card'},
        'TIME',
        ((machines.TIME_CARD,),),
        {'serialnum': 'fc:c2:3d:2e:d7:c0', 'gnss_sync': 'SYNC'},
    ),
)

LINES = tuple(base.a_line(kind.function, **kind.keys) for kind in KINDS)


class TestDrivers(base.HostTestCase):
    """Each driver, with hardware of its kind."""

    machine = machines.EVERY_KIND

    def setUp(self):
        super().setUp()
        for card in (machines.INTEL_GPU, machines.INTEL_FPGA):
            self.addCleanup(
                self.sysfs.write, base.address(card), 'sriov_numvfs', '0'
            )
        self.make_virtual_functions(*LINES)

    def handles(self, device):
        return [
            handle
            for deployable in device.deployables
            for handle in deployable.handles
        ]

    def test_devices(self):
        for kind, line in zip(KINDS, LINES, strict=True):
            device = self.discover_one(line)
            self.assertEqual(
                (base.address(kind.function), kind.type, None),
                (device.address, device.type, device.fault),
            )
            self.assertLessEqual(
                kind.attributes.items(), device.attributes.items()
            )
            self.assertNotEqual([], self.handles(device))
            self.assertEqual(
                [tuple(map(base.address, unit)) for unit in kind.units],
                [
                    handle.functions
                    for handle in self.handles(device)
                    if handle.functions
                ],
            )

    def test_all_at_once(self):
        """In one configuration, in which no line harms another."""
        alone = {line: self.discover_one(line) for line in LINES}
        inventory = self.discover(*LINES)
        self.assertEqual((), inventory.refused)
        self.assertEqual(
            sorted(alone.values(), key=lambda device: device.address),
            sorted(inventory.devices, key=lambda device: device.address),
        )

    def test_regions(self):
        """What identifies an FPGA's region and function is in its traits."""
        for card, region, function in (
            (
                machines.INTEL_FPGA,
                '9346116DA52D5CA8B06AA9A389EF7C8D',
                '850ADCC26CEB4B229722D43375B61C66',
            ),
            (
                machines.XILINX_FPGA[0],
                '15FB8DA143E78A1D40E9B42D5D6BA1A2',
                '58C06B8CC8824AC48FE1E9DB1CAFA1C1',
            ),
        ):
            (line,) = [
                line
                for kind, line in zip(KINDS, LINES, strict=True)
                if kind.function == card
            ]
            (deployable,) = self.discover_one(line).deployables
            traits = ' '.join(deployable.traits).replace('_', '')
            self.assertIn(f'REGION{region}', traits)
            self.assertIn(f'FUNCTION{function}', traits)

    def test_plugged_and_unplugged(self):
        """All units of all devices at once; nothing is left of it."""
        devices = self.discover(*LINES).devices
        for device in devices:
            driver = self.drivers[device.driver]
            for handle in self.handles(device):
                self.addCleanup(driver.unplug, handle)
                driver.plug(handle)
                driver.plug(handle)
        self.assert_soon(
            {
                handle.uuid
                for device in devices
                for handle in self.handles(device)
                if handle.mdev_type
            },
            lambda: {mdev.uuid for mdev in self.node_devices.mdevs()},
        )
        self.assertEqual(
            ['1147', '1147', '0', '0'],
            [
                self.sysfs.read(
                    base.address(machines.VFIO_GPU.virtual(index)),
                    'nvidia/current_vgpu_type',
                )
                for index in range(4)
            ],
        )
        self.assertEqual(devices, self.discover(*LINES).devices)
        for device in devices:
            for handle in self.handles(device):
                self.drivers[device.driver].unplug(handle)
        self.assertEqual((), self.node_devices.mdevs())
        self.assertEqual(devices, self.discover(*LINES).devices)

    def test_the_host_reboots(self):
        """Everything is found again, with the same names."""
        before = self.discover(*LINES)
        self.reboot()
        self.make_virtual_functions(*LINES)
        self.assertEqual(before, self.discover(*LINES))
