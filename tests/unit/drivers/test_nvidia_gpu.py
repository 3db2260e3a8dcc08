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

from nova_accel.drivers import nvidia_gpu
from nova_accel.model import pci_address
from unit.drivers import base


class TestNvidiaGpu(base.DriverTestCase):
    driver = nvidia_gpu.NvidiaGpuDriver
    spec = {'vendor_id': '10de'}

    def functions(self):
        return [
            base.a_function(self.CARD, '10de', '1eb8'),
            *(
                base.a_function(f'0000:3d:00.{number}', '10de', product)
                for number, product in ((1, '10f8'), (2, '1ad8'), (3, '1ad9'))
            ),
            *(
                base.a_function(
                    f'0000:{bus}:00.0',
                    '10de',
                    '1eb8',
                    iommu_members=tuple(
                        map(
                            pci_address.PciAddress.parse,
                            ('0000:7d:00.0', '0000:7e:00.0'),
                        )
                    ),
                )
                for bus in ('7d', '7e')
            ),
            *base.sriov('0000:4d:00.0', '10de', '2236', '2236', 2),
            base.a_function(
                '0000:6d:00.0', '10de', '22a3', class_code='068000'
            ),
            base.a_function(
                '0000:5d:00.0', '10de', '1eb8', mdev_types={'nvidia-222': 16}
            ),
        ]

    def test_the_card_is_one_unit(self):
        device = self.discover()
        self.assertEqual(('GPU', True), (device.type, device.pooled))
        self.assertEqual([{'CUSTOM_GPU_NVIDIA_TESLA_T4'}], self.traits(device))
        (handle,) = self.handles(device)
        self.assertEqual(
            [f'0000:3d:00.{number}' for number in range(4)],
            [str(function) for function in handle.functions],
        )

    def test_its_iommu_group_if_the_line_says_so(self):
        (handle,) = self.handles(
            self.discover('0000:7d:00.0', unit='iommu_group')
        )
        self.assertEqual(
            ['0000:7d:00.0', '0000:7e:00.0'],
            [str(function) for function in handle.functions],
        )

    def test_its_other_functions_are_no_gpus(self):
        self.assert_refused('function 0', address='0000:3d:00.1')

    def test_an_nvswitch_is_no_gpu(self):
        self.assert_refused(
            'no GPU: its PCI class is 068000', address='0000:6d:00.0'
        )

    def test_a_card_with_virtual_functions(self):
        self.assert_refused('2 virtual functions', address='0000:4d:00.0')

    def test_a_virtual_function(self):
        self.assert_refused(
            'virtual function', address=base.the_address(1, '4d')
        )

    def test_a_card_with_mediated_devices(self):
        (handle,) = self.handles(self.discover('0000:5d:00.0'))
        self.node_devices.create_mdev(
            '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f',
            handle.address,
            'nvidia-222',
        )
        self.assert_refused('1 mediated device', address='0000:5d:00.0')
