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

from nova_accel.privileged import pci_function
from unit.privileged import tree

ADDRESS = tree.ADDRESS


class TestAddress(testtools.TestCase):
    def test_as_sysfs_has_it(self):
        self.assertEqual(ADDRESS, pci_function.address(ADDRESS))

    def test_what_is_none(self):
        for text in ('', '..', f'{ADDRESS}/', f'../{ADDRESS}', '0000:3d:00.8'):
            error = self.assertRaises(ValueError, pci_function.address, text)
            # No other one reaches the process that has called.
            self.assertIs(ValueError, type(error))


class TestAttribute(tree.TreeTestCase):
    def attribute(self, name='numvfs'):
        return pci_function.attribute(self.root, ADDRESS, name)

    def test_below_the_function(self):
        attribute = self.function / 'card/numvfs'
        attribute.parent.mkdir()
        attribute.touch()
        self.assertEqual(attribute, self.attribute('card/numvfs'))

    def test_not_there(self):
        self.assertRaises(FileNotFoundError, self.attribute)

    def test_somewhere_else(self):
        other = self.function.parent / 'numvfs'
        other.touch()
        (self.function / 'numvfs').symlink_to(other)
        for name in ('numvfs', '../numvfs'):
            self.assertRaises(ValueError, self.attribute, name)

    def test_a_function_outside_the_tree_of_devices(self):
        self.function.rename(self.root / 'elsewhere')
        self.function.symlink_to(self.root / 'elsewhere')
        (self.root / 'elsewhere/numvfs').touch()
        self.assertRaises(ValueError, self.attribute)
