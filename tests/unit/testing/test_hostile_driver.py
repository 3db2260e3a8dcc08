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

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.testing import fake_fpga
from nova_accel.testing import hostile_driver


class TestHostileDriver(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.hostile = self.useFixture(
            hostile_driver.HostileDriver(fake_fpga.FakeFpgaDriver)
        )
        self.driver = fake_fpga.FakeFpgaDriver(None, None, 'uuid')

    def test_it_is_well_until_it_is_told(self):
        self.driver.plug('handle')
        self.driver.unplug('handle')
        self.assertEqual({'plug', 'unplug'}, self.hostile.asked)

    def test_one_method_at_a_time(self):
        with self.hostile.hostile('plug', 'KeyError'):
            self.assertRaises(KeyError, self.driver.plug, 'handle')
            self.driver.unplug('handle')
        self.driver.plug('handle')

    def test_each_deed(self):
        for deed, error in (
            ('refuses', exceptions.DeviceError),
            ('OSError', OSError),
            ('another of our errors', exceptions.StaleAttempt),
            ('sys.exit', SystemExit),
        ):
            with self.hostile.hostile('unplug', deed):
                self.assertRaises(error, self.driver.unplug, 'handle')
        with self.hostile.hostile('discover', 'garbage'):
            self.assertIsInstance(self.driver.discover(), object)

    def test_all_that_a_driver_is_asked(self):
        self.assertLessEqual(
            {'discover', 'plug', 'clean', 'load_shell'},
            set(hostile_driver.METHODS),
        )
        for method in hostile_driver.METHODS:
            self.assertTrue(callable(getattr(base.Driver, method)))
