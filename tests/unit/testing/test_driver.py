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


import testtools

from nova_accel import exceptions
from nova_accel.host import node_devices
from nova_accel.model import device_spec
from nova_accel.testing import devices
from nova_accel.testing import driver
from nova_accel.testing import libvirt

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


class TestFakeFpgaDriver(testtools.TestCase):

    def setUp(self):
        super().setUp()
        fake = self.useFixture(libvirt.Libvirt(
            devices.pci_info(gpus=0, fpgas=2, fpga_vfs=3, qats=0)))
        self.host = node_devices.NodeDevices(fake.host).look()
        self.driver = driver.FakeFpgaDriver(None, NODE_UUID)
        (self.spec,) = device_spec.parse([devices.FPGA_SPEC], ['fake'])

    def discover(self):
        return [self.driver.discover(function, self.spec, self.host)
                for function in self.host.functions.values()
                if function.product_id == '09c4']

    def test_each_virtual_function_is_a_region(self):
        for device in self.discover():
            card = self.host.functions[device.address]
            self.assertEqual(
                ['region0', 'region1', 'region2'],
                [region.name for region in device.deployables])
            self.assertEqual(
                card.virtual_functions,
                tuple(handle.address for region in device.deployables
                      for handle in region.handles))

    def test_regions_are_told_apart_alike_on_all_cards(self):
        first, second = ([region.traits for region in device.deployables]
                         for device in self.discover())
        self.assertEqual(first, second)
        self.assertEqual(3, len(set(first)))

    def test_handles_are_not_alike(self):
        uuids = [handle.uuid for device in self.discover()
                 for region in device.deployables
                 for handle in region.handles]
        self.assertEqual(6, len(set(uuids)))

    def test_no_regions(self):
        region = next(function for function in self.host.functions.values()
                      if function.parent_address is not None)
        self.assertRaises(exceptions.DeviceError, self.driver.discover,
                          region, self.spec, self.host)
