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
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

GPU = '0000:3d:00.0'


class TestFakeSysfs(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.address = pci_address.PciAddress.parse(GPU)

    def test_attributes_of_functions(self):
        self.fake.set(GPU, numa_node='1', nvidia__current_vgpu_type='0')
        self.fake.set(GPU, numa_node='0')
        self.assertEqual(
            ('numa_node', 'nvidia'), self.fake.sysfs.names(self.address)
        )
        self.assertEqual('0', self.fake.sysfs.read(self.address, 'numa_node'))

    def test_a_function_that_is_gone(self):
        self.fake.set(GPU, numa_node='1')
        self.fake.remove(GPU)
        self.assertEqual((), self.fake.sysfs.names(self.address))

    def test_a_place_in_the_tree(self):
        self.fake.place(GPU, 'pci0000:3a', ['0000:3a:01.0'])
        self.fake.set(GPU, numa_node='1')
        self.assertEqual('1', self.fake.sysfs.read(self.address, 'numa_node'))
        path = (self.fake.root / 'bus/pci/devices' / GPU).resolve()
        self.assertEqual(
            self.fake.root.resolve()
            / f'devices/pci0000:3a/0000:3a:01.0/{GPU}',
            path,
        )

    def test_a_shorter_value_replaces_a_longer_one(self):
        self.fake.set(GPU, sriov_numvfs='16')
        self.fake.sysfs.write(self.address, 'sriov_numvfs', '4')
        self.assertEqual(
            '4', self.fake.sysfs.read(self.address, 'sriov_numvfs')
        )

    def test_the_kernel_reacts(self):
        seen = []
        self.fake.on_write['sriov_numvfs'] = lambda address, value: (
            seen.append((str(address), value))
        )
        self.fake.set(GPU, sriov_numvfs='0')
        self.fake.sysfs.write(self.address, 'sriov_numvfs', '4')
        self.assertEqual([(GPU, '4')], seen)

    def test_what_the_kernel_refuses(self):
        self.fake.set(GPU, numa_node='1')
        self.assertRaises(
            exceptions.DeviceError,
            self.fake.sysfs.write,
            self.address,
            'numa_node',
            '0',
        )
