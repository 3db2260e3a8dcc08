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

from nova_accel.drivers import gpu_sriov
from unit.drivers import base


class GpuTests:
    driver = gpu_sriov.GpuSriovDriver

    def test_units(self):
        device = self.discover()
        self.assertEqual(('VGPU', False), (device.type, device.pooled))
        (deployable,) = device.deployables
        self.assertEqual('VGPU', deployable.resource_class)
        self.assertEqual({self.TRAIT}, deployable.traits)
        self.assertEqual(
            [base.the_address(1), base.the_address(2)], self.addresses(device)
        )

    def test_virtual_function_alone(self):
        self.assert_refused(self.CARD, address=base.the_address(1))


class TestIntel(GpuTests, base.DriverTestCase):
    spec = {'vendor_id': '8086'}
    TRAIT = 'CUSTOM_VGPU_INTEL_DATA_CENTER_GPU_FLEX_170'

    def functions(self):
        return base.sriov(self.CARD, '8086', '56c0', '56c0', 2, driver='xe')


class TestAmd(GpuTests, base.DriverTestCase):
    spec = {'vendor_id': '1002'}
    TRAIT = 'CUSTOM_VGPU_AMD_INSTINCT_MI300X'

    def functions(self):
        return base.sriov(self.CARD, '1002', '74a1', '74b5', 2, driver='gim')


class TestNoFunctions(base.DriverTestCase):
    """The fewest that there are is one."""

    driver = gpu_sriov.GpuSriovDriver
    spec = {'vendor_id': '8086'}

    def functions(self):
        return [
            *base.sriov(self.CARD, '8086', '56c0', '56c0', 1),
            base.a_function('0000:4d:00.0', '8086', '56c0'),
            # An FPGA with a virtual function for each of its accelerators.
            *base.sriov('0000:b1:00.0', '8086', 'bcce', 'bccf', 3),
        ]

    def test_none(self):
        self.assert_refused('no virtual functions', address='0000:4d:00.0')

    def test_no_gpu(self):
        self.assert_refused('its type is FPGA', address='0000:b1:00.0')
