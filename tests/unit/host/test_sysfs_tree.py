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

import dataclasses
import errno

import fixtures
from oslo_privsep import daemon
import testtools

from nova_accel import exceptions
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

GPU = pci_address.PciAddress.parse('0000:3d:00.0')
OTHER = pci_address.PciAddress.parse('0000:3e:00.0')


class SysfsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.set(GPU, sriov_numvfs='0', nvidia__current_vgpu_type='0')
        self.sysfs = self.fake.sysfs
        self.function = self.fake.root / 'bus/pci/devices' / str(GPU)

    def assert_refused(self, text, method, *arguments):
        error = self.assertRaises(exceptions.DeviceError, method, *arguments)
        self.assertIn(text, str(error))


class TestRead(SysfsTestCase):
    def test_a_value(self):
        self.assertEqual('0', self.sysfs.read(GPU, 'sriov_numvfs'))
        self.assertEqual('0', self.sysfs.read(GPU, 'nvidia/current_vgpu_type'))

    def test_no_such_thing(self):
        for address, attribute in (
            (OTHER, 'sriov_numvfs'),
            (GPU, 'nvidia/none'),
            (GPU, 'sriov_numvfs/below'),
        ):
            self.assertIsNone(self.sysfs.read(address, attribute))

    def test_it_cannot_be_read(self):
        self.assert_refused(
            'nvidia of 0000:3d:00.0 cannot be read',
            self.sysfs.read,
            GPU,
            'nvidia',
        )

    def test_what_no_attribute_says(self):
        for contents, value in (
            (b'10de\0\0\n', '10de'),
            (bytes(4096), ''),
            (b'\xffGPU \xc3\xa4\n', '\ufffdGPU \xe4'),
            (b'x' * sysfs_tree.MAX_BYTES, 'x' * sysfs_tree.MAX_BYTES),
        ):
            (self.function / 'label').write_bytes(contents)
            self.assertEqual(value, self.sysfs.read(GPU, 'label'))

    def test_it_does_not_end(self):
        (self.function / 'label').symlink_to('/dev/zero')
        self.assert_refused('EFBIG', self.sysfs.read, GPU, 'label')


class TestOptional(SysfsTestCase):
    """Nothing is lost by it, and it is told once."""

    def setUp(self):
        super().setUp()
        self.fake.set(OTHER, nvidia__current_vgpu_type='0')

    def test_it_cannot_be_read(self):
        with sysfs_tree.noting() as notes:
            for address in (GPU, OTHER, GPU):
                self.assertIsNone(self.sysfs.optional.read(address, 'nvidia'))
            self.assertEqual(
                '0', self.sysfs.optional.read(GPU, 'sriov_numvfs')
            )
            self.assertIsNone(self.sysfs.optional.read(GPU, 'none'))
            self.assertIsNone(self.sysfs.optional.link(GPU, 'sriov_numvfs'))
        self.assertEqual(
            [
                f'{GPU}, {OTHER}: nvidia cannot be read: '
                'EISDIR, Is a directory',
                f'{GPU}: sriov_numvfs cannot be read: '
                'EINVAL, Invalid argument',
            ],
            notes.texts(),
        )

    def test_of_many_functions_some_are_named(self):
        notes = sysfs_tree.Notes()
        for number in range(48):
            notes.add(dataclasses.replace(GPU, bus=number), 'it is odd')
        (text,) = notes.texts()
        self.assertIn('and 45 more: it is odd', text)

    def test_without_a_look_it_is_logged(self):
        log = self.useFixture(fixtures.FakeLogger())
        with sysfs_tree.noting() as notes:
            pass
        self.sysfs.optional.read(GPU, 'nvidia')
        self.assertEqual([], notes.texts())
        self.assertIn('nvidia cannot be read', log.output)

    def test_the_other_is_not_changed(self):
        self.assert_refused('EISDIR', self.sysfs.read, GPU, 'nvidia')


class TestNames(SysfsTestCase):
    def test_of_the_function_and_below(self):
        self.assertEqual(('nvidia', 'sriov_numvfs'), self.sysfs.names(GPU))
        self.assertEqual(
            ('current_vgpu_type',), self.sysfs.names(GPU, 'nvidia')
        )

    def test_no_such_directory(self):
        for address, directory in (
            (OTHER, '.'),
            (GPU, 'none'),
            (GPU, 'sriov_numvfs'),
        ):
            self.assertEqual((), self.sysfs.names(address, directory))


class TestIdentity(SysfsTestCase):
    def test_it_is_that_of_the_directory(self):
        self.fake.set(GPU, a__x='1', b__x='1')
        told = {self.sysfs.identity(GPU, name) for name in ('a', 'b', 'a')}
        self.assertEqual(2, len(told))
        self.assertIsNone(self.sysfs.identity(GPU, 'c'))


class TestRealPath(SysfsTestCase):
    def test_of_a_function(self):
        self.assertEqual(
            ('devices', 'pci0000:00', str(GPU)), self.sysfs.real_path(GPU)
        )

    def test_no_such_function(self):
        self.assertIsNone(self.sysfs.real_path(OTHER))


class TestLink(SysfsTestCase):
    def test_what_it_leads_to(self):
        (self.function / 'driver').symlink_to('../../bus/pci/drivers/nvidia')
        self.assertEqual('nvidia', self.sysfs.link(GPU, 'driver'))

    def test_no_such_link(self):
        self.assertIsNone(self.sysfs.link(GPU, 'driver'))
        self.assertIsNone(self.sysfs.link(OTHER, 'driver'))

    def test_it_is_no_link(self):
        self.assert_refused(
            'sriov_numvfs of 0000:3d:00.0',
            self.sysfs.link,
            GPU,
            'sriov_numvfs',
        )


class TestBound(SysfsTestCase):
    def test_functions_and_attributes_of_a_driver(self):
        self.assertEqual((), self.sysfs.bound('nvme'))
        driver = self.fake.root / 'bus/pci/drivers/nvme'
        driver.mkdir(parents=True)
        for name in ('bind', 'new_id', 'module', str(OTHER), str(GPU)):
            (driver / name).touch()
        self.assertEqual(tuple(sorted((GPU, OTHER))), self.sysfs.bound('nvme'))

    def test_it_cannot_be_read(self):
        (self.fake.root / 'bus/pci/drivers').mkdir(parents=True)
        (self.fake.root / 'bus/pci/drivers/nvme').touch()
        self.assert_refused('ENOTDIR', self.sysfs.bound, 'nvme')


class TestWrite(SysfsTestCase):
    def test_it_is_read_back(self):
        self.sysfs.write(GPU, 'sriov_numvfs', '4')
        self.assertEqual('4', self.sysfs.read(GPU, 'sriov_numvfs'))

    def test_refused(self):
        for attribute, value, text in (
            ('vendor', '1', "'vendor' is not written"),
            ('reset', '1', 'No such file'),
            ('sriov_numvfs', 'x', 'not a decimal number'),
        ):
            self.assert_refused(text, self.sysfs.write, GPU, attribute, value)

    def test_what_the_daemon_says(self):
        for error, text in (
            (
                OSError(errno.EBUSY, 'Device or resource busy'),
                'sriov_numvfs of 0000:3d:00.0: Device or resource busy',
            ),
            (daemon.FailedToDropPrivileges('sudo says no'), 'sudo says no'),
        ):

            def write(*_arguments, error=error):
                raise error

            self.assert_refused(
                text,
                sysfs_tree.Sysfs(self.fake.root, write).write,
                GPU,
                'sriov_numvfs',
                '4',
            )


class TestReadOnly(SysfsTestCase):
    def test_a_write_is_refused(self):
        sysfs = self.sysfs.read_only
        self.assert_refused(
            'cannot be written to sriov_numvfs of 0000:3d:00.0: Read-only',
            sysfs.write,
            GPU,
            'sriov_numvfs',
            '4',
        )
        self.assertEqual('0', sysfs.read(GPU, 'sriov_numvfs'))
        self.assertEqual(self.sysfs.proc, sysfs.proc)


class TestOf(testtools.TestCase):
    def test_the_host_s_own(self):
        self.assertIsNone(sysfs_tree.of(None).read(OTHER, 'no-such-attribute'))

    def test_simulated(self):
        simulated = self.useFixture(fake_sysfs.FakeSysfs())
        self.assertIs(simulated.sysfs, sysfs_tree.of(None))
