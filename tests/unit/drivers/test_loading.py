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
from nova_accel.drivers import base
from nova_accel.drivers import loading
from nova_accel.testing import installed_driver
from unit.drivers import test_answers

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


class Broken(base.Driver):
    """Its constructor fails."""

    def __init__(self, *arguments):
        raise OSError('libacme.so.1')

    def discover(self, function, spec, host):
        raise NotImplementedError


class TestLoading(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())

    def install(self, **values):
        """Entry points beside those that are installed."""
        for name, value in values.items():
            self.useFixture(installed_driver.InstalledDriver(name, value))

    def load(self):
        return loading.load(None, None, NODE_UUID)

    def test_installed_drivers(self):
        drivers = self.load()
        self.assertFalse({'mdev', 'pci', 'xrt'} - drivers.keys())
        self.assertEqual(sorted(drivers), loading.names())
        for driver in drivers.values():
            self.assertIsInstance(driver, base.Driver)
        self.assertTrue(drivers['xrt'].tells_contents)
        self.assertEqual('', self.log.output)

    def test_a_broken_one_is_the_fault_of_its_devices_alone(self):
        asserts = self.useFixture(fixtures.TempDir()).join('asserts.py')
        with open(asserts, 'w') as file:
            file.write('assert False, "no licence"')
        leaves = self.useFixture(fixtures.TempDir()).join('leaves.py')
        with open(leaves, 'w') as file:
            file.write('import sys; sys.exit(1)')
        for path in (asserts, leaves):
            self.useFixture(
                fixtures.MonkeyPatch(
                    'sys.path',
                    [*__import__('sys').path, path.rpartition('/')[0]],
                )
            )
        self.install(
            missing='nowhere.to_be:Found',
            none='os:nothing',
            asserts='asserts:Driver',
            leaves='leaves:Driver',
            number='sys:pi',
            constructor=f'{__name__}:Broken',
        )
        drivers = self.load()
        for name, text in (
            ('missing', 'nowhere.to_be:Found'),
            ('none', 'os:nothing'),
            ('asserts', 'no licence'),
            ('leaves', 'SystemExit'),
            ('number', 'sys:pi'),
            ('constructor', 'libacme.so.1'),
        ):
            self.assertIn(name, loading.names())
            error = self.assertRaises(
                exceptions.DeviceError,
                drivers[name].unplug,
                test_answers.HANDLE,
            )
            for part in (f'driver {name} ', text):
                self.assertIn(part, str(error))
                self.assertIn(part, self.log.output)
        drivers['pci'].unplug(test_answers.HANDLE)
