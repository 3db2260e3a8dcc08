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

import errno
import fcntl
import os

import fixtures

from nova_accel.privileged import nvme_drive
from unit.privileged import drive_tree


class TestDrive(drive_tree.DriveTestCase):
    def enter(self, address=drive_tree.ADDRESS, serial=drive_tree.SERIAL):
        with nvme_drive.drive(address, serial) as found:
            return found

    def test_the_one_that_is_meant(self):
        found = self.enter()
        self.assertEqual('nvme0', found.node.name)
        self.assertEqual({1: self.devices / 'nvme0n1'}, found.namespaces)

    def test_a_namespace_without_multipathing(self):
        directory = self.function / 'nvme/nvme0'
        (directory / 'nvme0c0n1').rename(directory / 'nvme0n3')
        self.assertEqual(
            {1: self.devices / 'nvme0n3'}, self.enter().namespaces
        )

    def test_another_is_there(self):
        error = self.assertRaises(ValueError, self.enter, serial='S2')
        self.assertIn(f"'{drive_tree.SERIAL}', not 'S2'", str(error))

    def test_none_is_there(self):
        self.unplug(drive_tree.ADDRESS)
        error = self.assertRaises(ValueError, self.enter)
        self.assertIn('no drive', str(error))
        (self.function / 'nvme').mkdir()
        self.assertRaises(ValueError, self.enter)

    def test_without_a_serial_number(self):
        """It would be like any other one without."""
        self.plug(drive_tree.ADDRESS, '')
        self.assertRaises(ValueError, self.enter, serial='')

    def test_another_comes(self):
        for plug in (
            lambda: self.plug(drive_tree.ADDRESS, 'S2'),
            lambda: self.plug(drive_tree.ADDRESS),
            lambda: self.unplug(drive_tree.ADDRESS),
        ):
            self.plug(drive_tree.ADDRESS)

            def body(plug=plug):
                with nvme_drive.drive(drive_tree.ADDRESS, drive_tree.SERIAL):
                    plug()

            self.assertRaises(ValueError, body)

    def test_a_fault_of_the_body_comes_first(self):
        def body():
            with nvme_drive.drive(drive_tree.ADDRESS, drive_tree.SERIAL):
                self.plug(drive_tree.ADDRESS)
                raise KeyError

        self.assertRaises(KeyError, body)


class TestUnused(drive_tree.DriveTestCase):
    def test_claimed_while_it_lasts(self):
        opened = {}
        os_open = os.open

        def note(path, flags, *more):
            file = os_open(path, flags, *more)
            opened[str(path)] = flags, file
            return file

        self.useFixture(fixtures.MonkeyPatch('os.open', note))
        with (
            nvme_drive.drive(drive_tree.ADDRESS, drive_tree.SERIAL) as found,
            nvme_drive.unused(found),
        ):
            ((path, (flags, file)),) = opened.items()
            self.assertEqual(str(self.devices / 'nvme0n1'), path)
            self.assertTrue(flags & os.O_EXCL)
            fcntl.fcntl(file, fcntl.F_GETFD)
        error = self.assertRaises(OSError, fcntl.fcntl, file, fcntl.F_GETFD)
        self.assertEqual(errno.EBADF, error.errno)

    def test_it_cannot_be_told(self):
        (self.devices / 'nvme0n1').unlink()

        def body():
            with (
                nvme_drive.drive(
                    drive_tree.ADDRESS, drive_tree.SERIAL
                ) as found,
                nvme_drive.unused(found),
            ):
                raise AssertionError

        self.assertRaises(FileNotFoundError, body)

    def test_claimed_by_all_controllers_of_the_drive(self):
        other = '0000:3e:00.0'
        self.add(other, 'nvme')
        self.plug(other)
        directories = [
            self.function.parent / each / 'nvme/nvme0'
            for each in (drive_tree.ADDRESS, other)
        ]
        namespace = directories[1] / 'nvme0c0n1'
        namespace.rename(directories[1] / 'nvme5n1')
        (self.devices / 'nvme5n1').write_bytes(b'data')
        drivers = self.root / 'bus/pci/drivers/nvme'
        drivers.mkdir(parents=True, exist_ok=True)
        for each in (drive_tree.ADDRESS, other):
            (drivers / each).touch()
        for nqns, names in (
            ((None, None), {'nvme0n1'}),
            (('nqn.x', None), {'nvme0n1'}),
            (('nqn.x', 'nqn.y'), {'nvme0n1'}),
            (('nqn.x', 'nqn.x'), {'nvme0n1', 'nvme5n1'}),
        ):
            for directory, nqn in zip(directories, nqns, strict=True):
                if nqn is not None:
                    (directory / 'subsysnqn').write_text(f'{nqn}\n')
            self.assertEqual(names, self.claimed(), nqns)

    def claimed(self):
        opened = set()
        os_open = os.open

        def note(path, *more):
            opened.add(os.path.basename(path))
            return os_open(path, *more)

        with (
            fixtures.MonkeyPatch('os.open', note),
            nvme_drive.drive(drive_tree.ADDRESS, drive_tree.SERIAL) as found,
            nvme_drive.unused(found),
        ):
            return opened
