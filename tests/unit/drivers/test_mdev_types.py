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

from nova_accel.drivers import mdev_types
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions

CARD, OTHER = '0000:3d:00.4', '0000:3d:00.5'


class TestMdevTypes(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.types = mdev_types.MdevTypes(
            self.sysfs.sysfs,
            [
                pci_functions.function(
                    CARD, '10de', '2236', mdev_types={'b': 0}
                ),
                pci_functions.function(
                    OTHER, '10de', '2236', mdev_types={'a': 1, 'b': 1}
                ),
            ],
        )

    def describe(self, address, **attributes):
        self.sysfs.set(
            address,
            **{
                f'mdev_supported_types__b__{name}': value
                for name, value in attributes.items()
            },
        )

    def test_all_that_a_function_makes(self):
        self.assertEqual(['a', 'b'], self.types.ids)

    def test_the_first_function_that_tells(self):
        self.describe(CARD, name='', description='num_heads=4')
        self.describe(
            OTHER,
            name='GRID A-1B',
            description='num_heads=4, max_instance=24',
        )
        self.assertEqual('GRID A-1B', self.types.name('b'))
        self.assertEqual(24, self.types.most('b'))

    def test_what_no_function_tells(self):
        self.describe(CARD, description='max_instance=0')
        self.assertIsNone(self.types.name('b'))
        self.assertIsNone(self.types.most('b'))
