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
import os
import pathlib

import fixtures
import testtools

from nova_accel import privileged
from nova_accel.privileged import pci_attributes
from unit.privileged import tree

ADDRESS = tree.ADDRESS


class SysfsTestCase(tree.TreeTestCase):
    def setUp(self):
        super().setUp()
        self.attribute = self.function / 'sriov_numvfs'
        self.attribute.write_text('0')
        self.outside = self.root / 'outside'
        self.outside.write_text('0')

    def write(self, address=ADDRESS, attribute='sriov_numvfs', value='4'):
        pci_attributes.write_below(self.root, address, attribute, value)

    def assert_refused(self, **arguments):
        self.assertRaises((ValueError, OSError), self.write, **arguments)
        self.assertEqual('0', self.attribute.read_text())
        self.assertEqual('0', self.outside.read_text())


class TestWriteBelow(SysfsTestCase):
    def test_an_attribute_that_is_known(self):
        self.write()
        self.assertEqual('4', self.attribute.read_text())

    def test_in_a_directory_of_the_function(self):
        (self.function / 'nvidia').mkdir()
        current = self.function / 'nvidia/current_vgpu_type'
        current.write_text('0')
        self.write(attribute='nvidia/current_vgpu_type', value='557')
        self.assertEqual('557', current.read_text())

    def test_parameters_as_with_echo(self):
        """NVIDIA's driver takes the last character for a line's end."""
        (self.function / 'nvidia').mkdir()
        file = self.function / 'nvidia/vgpu_params'
        for value, written in (('a=1,b=2', 'a=1,b=2\n'), ('', ' \n')):
            file.write_text('')
            self.write(attribute='nvidia/vgpu_params', value=value)
            self.assertEqual(written, file.read_text())
        for value in (' ', 'a', 'a=1\n', 'vgpu_type_id=1', f'a={"1" * 1024}'):
            self.assert_refused(attribute='nvidia/vgpu_params', value=value)
        self.assertEqual(' \n', file.read_text())

    def test_any_other_attribute(self):
        (self.function / 'remove').write_text('0')
        for attribute in (
            'remove',
            '',
            '.',
            '../sriov_numvfs',
            '/etc/passwd',
            'sriov_numvfs/',
            'sriov_numvfs\n',
            '../../../outside',
        ):
            self.assert_refused(attribute=attribute)
        self.assertEqual('0', (self.function / 'remove').read_text())

    def test_what_is_no_address(self):
        for address in (
            '..',
            '',
            '.',
            '0000:3d:00.0/',
            '/',
            f'../devices/{ADDRESS}',
            f'{ADDRESS}\n',
            '0000:3d:00.8',
        ):
            self.assert_refused(address=address)

    def test_what_is_no_number(self):
        for value in ('', '-1', '4\n', '0x4', 'four', '٤', '4 4', 11 * '4'):
            self.assert_refused(value=value)

    def test_what_is_not_there(self):
        error = self.assertRaises(OSError, self.write, address='0000:3d:00.1')
        self.assertEqual(errno.ENOENT, error.errno)
        self.attribute.unlink()
        error = self.assertRaises(OSError, self.write)
        self.assertEqual(errno.ENOENT, error.errno)
        self.assertFalse(self.attribute.exists())

    def test_a_link_out_of_the_tree(self):
        (self.links / '0000:3d:00.1').symlink_to(self.root / 'elsewhere')
        (self.root / 'elsewhere').mkdir()
        (self.root / 'elsewhere/sriov_numvfs').write_text('0')
        self.assert_refused(address='0000:3d:00.1')
        self.assertEqual(
            '0', (self.root / 'elsewhere/sriov_numvfs').read_text()
        )

    def test_an_attribute_that_is_a_link(self):
        self.attribute.unlink()
        self.attribute.symlink_to(self.outside)
        self.assertRaises((ValueError, OSError), self.write)
        self.assertEqual('0', self.outside.read_text())

    def test_a_directory_that_is_a_link(self):
        (self.root / 'nvidia').mkdir()
        (self.root / 'nvidia/current_vgpu_type').write_text('0')
        (self.function / 'nvidia').symlink_to(self.root / 'nvidia')
        self.assert_refused(attribute='nvidia/current_vgpu_type')
        self.assertEqual(
            '0', (self.root / 'nvidia/current_vgpu_type').read_text()
        )

    def test_the_function_refuses(self):
        self.attribute.unlink()
        self.attribute.mkdir()
        self.assertRaises(OSError, self.write)


class TestWrite(SysfsTestCase):
    """In the process itself."""

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.pci_attributes.ROOT', self.root
            )
        )
        self.addCleanup(privileged.sysfs_pctxt.set_client_mode, True)
        privileged.sysfs_pctxt.set_client_mode(False)
        tree.offer(self, {'address': ADDRESS, 'sriov_numvfs': 4})
        self.reset = self.function / 'reset'
        self.reset.write_text('-')

    def test_what_its_line_says(self):
        pci_attributes.write(ADDRESS, 'sriov_numvfs', '4')
        self.assertEqual('4', self.attribute.read_text())
        self.assertRaises(
            ValueError, pci_attributes.write, ADDRESS, 'remove', '1'
        )

    def test_another_number_than_its_line_says(self):
        for value in ('0', '3', '40', '04'):
            error = self.assertRaises(
                ValueError,
                pci_attributes.write,
                ADDRESS,
                'sriov_numvfs',
                value,
            )
            self.assertIn(f"value '{value}'", str(error))
        self.assertEqual('0', self.attribute.read_text())

    def test_virtual_functions_that_guests_may_have(self):
        self.attribute.write_text('4')
        for attribute, value in (('sriov_numvfs', '4'), ('reset', '1')):
            error = self.assertRaises(
                ValueError, pci_attributes.write, ADDRESS, attribute, value
            )
            self.assertIn('virtual functions', str(error))
        self.assertEqual('-', self.reset.read_text())

    def test_reset(self):
        pci_attributes.write(ADDRESS, 'reset', '1')
        self.assertEqual('1', self.reset.read_text())
        self.assertRaises(
            ValueError, pci_attributes.write, ADDRESS, 'reset', '2'
        )

    def test_a_function_that_no_line_offers(self):
        tree.offer(self, {'address': '0000:3d:00.1'})
        error = self.assertRaises(
            ValueError, pci_attributes.write, ADDRESS, 'reset', '1'
        )
        self.assertIn(f'address {ADDRESS}', str(error))
        self.assertIn('device_spec', str(error))
        self.assertEqual('-', self.reset.read_text())

    def test_a_virtual_function_of_what_a_line_offers(self):
        virtual = self.add('0000:3d:00.4', physfn=ADDRESS)
        self.attribute.write_text('4')
        (virtual / 'nvidia').mkdir()
        for name, value in (('reset', '1'), ('nvidia/current_vgpu_type', '5')):
            (virtual / name).write_text('-')
            pci_attributes.write('0000:3d:00.4', name, value)
            self.assertEqual(value, (virtual / name).read_text())
        (virtual / 'sriov_numvfs').write_text('0')
        self.assertRaises(
            ValueError,
            pci_attributes.write,
            '0000:3d:00.4',
            'sriov_numvfs',
            '4',
        )

    def test_parameters_that_its_line_does_not_say(self):
        (self.function / 'nvidia').mkdir()
        file = self.function / 'nvidia/vgpu_params'
        file.write_text('a=1')
        for line, taken in (({}, ()), ({'vgpu_params': 'b=2'}, ('b=2',))):
            tree.offer(self, {'address': ADDRESS, **line})
            for value in ('c=3', 'b=2,c=3', 'b=', 'b=2'):
                if value not in taken:
                    error = self.assertRaises(
                        ValueError,
                        pci_attributes.write,
                        ADDRESS,
                        'nvidia/vgpu_params',
                        value,
                    )
                    self.assertIn(f"value '{value}'", str(error))
            self.assertEqual('a=1', file.read_text())
            for value in (*taken, ''):
                file.write_text('')
                pci_attributes.write(ADDRESS, 'nvidia/vgpu_params', value)
                self.assertEqual(f'{value or " "}\n', file.read_text())
            file.write_text('a=1')


class TestItsProcess(testtools.TestCase):
    def test_with_no_capability(self):
        self.assertEqual([], privileged.sysfs_pctxt.conf.capabilities)

    def test_where_it_runs_can_be_found_by_name(self):
        """The daemon imports the context by its name."""
        command = privileged.sysfs_pctxt.helper_command('/socket')
        self.assertIn('nova_accel.privileged.sysfs_pctxt', command)
        self.assertTrue(
            privileged.sysfs_pctxt.is_entrypoint(pci_attributes.write)
        )

    def test_root_owns_what_is_written(self):
        self.assertEqual(pathlib.Path('/sys'), pci_attributes.ROOT)
        self.assertTrue(os.path.isabs(pci_attributes.ROOT))
