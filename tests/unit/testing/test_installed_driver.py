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

from importlib import metadata

import testtools

from nova_accel.drivers import loading
from nova_accel.testing import fake_fpga
from nova_accel.testing import installed_driver


class TestInstalledDriver(testtools.TestCase):
    def names(self, **selection):
        return metadata.entry_points(
            group=loading.NAMESPACE, **selection
        ).names

    def test_it_is_there_until_the_cleanup(self):
        before = self.names()
        with installed_driver.InstalledDriver('acme', 'acme_nova:Driver'):
            self.assertEqual({*before, 'acme'}, self.names())
        self.assertEqual(before, self.names())

    def test_several(self):
        self.useFixture(
            installed_driver.InstalledDriver('acme', 'acme_nova:Driver')
        )
        self.useFixture(fake_fpga.Installed())
        self.assertFalse({'acme', 'fake', 'pci'} - self.names())

    def test_it_is_found_by_its_name(self):
        self.useFixture(fake_fpga.Installed())
        self.assertEqual({'fake'}, self.names(name='fake'))
        self.assertEqual({'pci'}, self.names(name='pci'))

    def test_it_is_loaded(self):
        self.assertNotIn('fake', loading.names())
        self.useFixture(fake_fpga.Installed())
        loaded = loading.load(None, None, 'a uuid')['fake']
        self.assertTrue(loaded.tells_contents)

    def test_other_groups_are_as_they_are(self):
        before = metadata.entry_points(group='os_vif')
        self.useFixture(fake_fpga.Installed())
        self.assertEqual(before, metadata.entry_points(group='os_vif'))
        self.assertIn('os_vif', metadata.entry_points().groups)
