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


import pathlib

import testtools

from nova_accel import exceptions
from nova_accel.host import pci_topology
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_path
from nova_accel.testing import fake_sysfs

GPU = pci_address.PciAddress.parse('0000:1b:00.0')


class TestPath(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())

    def place(self, where, numa_node=None):
        function = self.fake.root / where
        function.mkdir(parents=True)
        if numa_node is not None:
            (function / 'numa_node').write_text(f'{numa_node}\n')
        (self.fake.root / 'bus/pci/devices' / str(GPU)).symlink_to(
            pathlib.Path('../../..', where)
        )

    def path(self):
        return pci_topology.path(self.fake.sysfs, GPU)

    def assert_refused(self, text):
        error = self.assertRaises(exceptions.DeviceError, self.path)
        self.assertIn(text, str(error))

    def test_below_a_switch(self):
        bridges = ('0000:16:02.0', '0000:17:00.0', '0000:18:00.0')
        self.place(f'devices/pci0000:16/{"/".join(bridges)}/{GPU}', 1)
        path = self.path()
        self.assertEqual(
            pci_path.PciPath(
                'pci0000:16',
                tuple(map(pci_address.PciAddress.parse, bridges)),
                1,
            ),
            path,
        )
        self.assertEqual('0000:17:00.0', str(path.switch()))

    def test_of_a_simulated_function(self):
        self.fake.set(GPU, numa_node='-1')
        self.assertEqual(pci_path.PciPath('pci0000:00'), self.path())

    def test_no_such_function(self):
        self.assert_refused('no PCI function 0000:1b:00.0')

    def test_outside_of_sysfs(self):
        elsewhere = self.useFixture(fake_sysfs.FakeSysfs()).root / str(GPU)
        elsewhere.mkdir()
        (self.fake.root / 'bus/pci/devices' / str(GPU)).symlink_to(elsewhere)
        self.assert_refused('no PCI function 0000:1b:00.0')

    def test_no_pci_tree(self):
        self.place(f'devices/platform/{GPU}')
        self.assert_refused('the place of 0000:1b:00.0 in the PCI tree')

    def test_another_function(self):
        self.place('devices/pci0000:16/0000:16:02.0')
        self.assert_refused("'0000:16:02.0' in the place of 0000:1b:00.0")

    def test_no_node(self):
        self.place(f'devices/pci0000:16/0000:16:02.0/{GPU}', 'near')
        self.assert_refused("'near' is not a NUMA node")


class TestMemoryBytes(testtools.TestCase):
    def test_of_a_function(self):
        fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.assertEqual(0, pci_topology.memory_bytes(fake.sysfs, GPU))
        fake.set(GPU, resource='0x1000 0x1fff 0x200')
        self.assertEqual(4096, pci_topology.memory_bytes(fake.sysfs, GPU))
        fake.set(GPU, resource='much')
        self.assertRaises(
            exceptions.DeviceError,
            pci_topology.memory_bytes,
            fake.sysfs,
            GPU,
        )
