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

from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.model.devices import device_spec
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


class TestPciInfo(testtools.TestCase):
    def discover(self, **hardware):
        self.useFixture(fake_fpga.Installed())
        fake = self.useFixture(libvirt.Libvirt(devices.pci_info(**hardware)))
        nodes = libvirt_devices.NodeDevices(fake.host)
        drivers = loading.load(nodes, fake.sysfs.sysfs, NODE_UUID)
        inventory = discovery.discover(
            nodes,
            drivers,
            device_spec.parse(devices.DEVICE_SPEC, drivers),
            nova_claims.NovaClaims('host1', NODE_UUID),
            lambda _mdevs: units_in_use.Found(),
            lambda: host_use.HostUse(fake.sysfs.sysfs),
            last_answers.LastAnswers(),
        )
        self.assertEqual((), inventory.refused)
        return inventory.devices

    def types(self, found):
        return [device.type for device in found]

    def test_default(self):
        self.assertEqual(
            ['VGPU', 'FPGA'] + 8 * ['QAT'], self.types(self.discover())
        )

    def test_other_hosts(self):
        self.assertEqual((), self.discover(gpus=0, fpgas=0, qats=0))
        found = self.discover(gpus=2, fpgas=3, fpga_vfs=1, qats=2, qat_vfs=16)
        self.assertEqual(
            2 * ['VGPU'] + 3 * ['FPGA'] + 32 * ['QAT'], self.types(found)
        )

    def test_bus_and_numa_node(self):
        found = self.discover(bus=0x10, numa_node=1)
        self.assertEqual(
            {0x10, 0x11, 0x12}, {device.address.bus for device in found}
        )
        self.assertEqual({1}, {device.numa_node for device in found})
