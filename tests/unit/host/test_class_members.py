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

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.host import class_members
from nova_accel.host import host_use
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

GPU, DRIVE = (
    pci_address.PciAddress.parse(address)
    for address in ('0000:3d:00.0', '0000:3e:00.0')
)


class TestAClassThatCannotBeListed(testtools.TestCase):
    """Only the functions that have objects of it are lost."""

    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.root = self.fake.root
        for address in (GPU, DRIVE):
            self.directory(address, 'power').mkdir(parents=True)

    def directory(self, address, path=''):
        return self.root / 'bus/pci/devices' / str(address) / path

    def lose(self, class_):
        """Its directory answers ELOOP."""
        path = self.root / 'class' / class_
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(path)

    def have(self, class_):
        directory = self.directory(DRIVE, f'it/{class_}0')
        directory.mkdir(parents=True)
        (directory / 'subsystem').symlink_to(f'../../../class/{class_}')

    def test_each_class(self):
        for class_ in ('block', 'net', 'drm', 'graphics'):
            self.lose(class_)
            self.have(class_)
            members = class_members.ClassMembers(self.root)
            with sysfs_tree.noting() as notes:
                self.assertEqual((), members.of(GPU, class_))
                for _again in range(2):
                    error = self.assertRaises(
                        OSError, members.of, DRIVE, class_
                    )
                    self.assertIn(class_, error.filename)
            (note,) = notes.texts()
            self.assertIn(f'class/{class_} cannot be listed: ELOOP', note)

    def test_what_the_host_uses(self):
        self.lose('block')
        self.have('block')
        use = host_use.HostUse(self.fake.sysfs)
        self.assertIsNone(use.reason(GPU))
        error = self.assertRaises(exceptions.DeviceError, use.reason, DRIVE)
        self.assertIn('class/block cannot be read', str(error))
        use.check_disks([GPU])
        self.assertRaises(exceptions.DeviceError, use.check_disks, [DRIVE])

    def test_a_function_that_cannot_be_looked_at(self):
        self.lose('block')
        members = class_members.ClassMembers(self.root)
        with fixtures.MonkeyPatch(
            'nova_accel.host.class_members._MAX_DIRECTORIES', 1
        ):
            self.assertRaises(OSError, members.of, GPU, 'block')
        self.assertEqual((), members.of(GPU, 'block'))
        self.assertEqual(
            (), members.of(pci_address.PciAddress(0, 9, 9, 0), 'block')
        )

    def test_a_class_that_the_host_does_not_have(self):
        members = class_members.ClassMembers(self.root)
        self.assertEqual((), members.of(GPU, 'block'))
