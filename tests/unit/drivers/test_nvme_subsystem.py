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

from nova_accel.drivers import nvme_subsystem
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from unit.drivers import fake_nvme

ONE, TWO = map(pci_address.PciAddress.parse, ('0000:3d:00.0', '0000:3e:00.0'))


class TestOthers(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.drive = self.useFixture(fake_nvme.FakeNvme(self.sysfs, ONE))

    def others(self):
        return nvme_subsystem.others(self.sysfs.sysfs, ONE)

    def test_another_controller_of_the_same_drive(self):
        self.assertEqual((), self.others())
        self.drive.connect(str(TWO))
        self.assertEqual((TWO,), self.others())

    def test_another_drive(self):
        """Of some, the NQN is the same for all of their kind."""
        for name in nvme_subsystem.DRIVE:
            self.drive.connect(str(TWO), **{name: 'other'})
            self.assertEqual((), self.others(), name)

    def test_drives_that_do_not_say_what_they_are(self):
        self.drive.connect(str(TWO))
        for name in nvme_subsystem.DRIVE:
            for address, path in ((ONE, 'nvme3'), (TWO, 'nvme4')):
                self.sysfs.set(address, **{f'nvme__{path}__{name}': ''})
        self.assertEqual((), self.others())

    def test_a_virtual_function(self):
        """It has namespaces of its own, and may be another's."""
        self.drive.connect(str(TWO))
        for address, card in ((TWO, ONE), (ONE, TWO)):
            link = (
                self.sysfs.root / 'bus/pci/devices' / str(address) / 'physfn'
            )
            link.symlink_to(f'../{card}')
            self.assertEqual((), self.others())
            link.unlink()
