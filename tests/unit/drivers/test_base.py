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
from nova_accel.drivers import pci
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
FUNCTIONS = tuple(
    pci_address.PciAddress(0, 0x3D, 0, number) for number in range(2)
)


class TestClean(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.done = []
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs()).sysfs
        for name in ('reset', 'run'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.drivers.device_cleaning.{name}',
                    lambda what, address, name=name: self.done.append(
                        (name, what, address)
                    ),
                )
            )

    def clean(self, *cleaning):
        pci.PciDriver(None, self.sysfs, NODE_UUID).clean(
            attach_handle.AttachHandle(
                'uuid',
                FUNCTIONS[0],
                further_functions=FUNCTIONS[1:],
                cleaning=cleaning,
            )
        )
        return self.done

    def test_reset_of_all_functions(self):
        self.assertEqual(
            [('reset', self.sysfs, function) for function in FUNCTIONS],
            self.clean('reset'),
        )

    def test_command_for_all_functions(self):
        self.assertEqual(
            [('run', ['/bin/wipe', '-v'], function) for function in FUNCTIONS],
            self.clean('command', '/bin/wipe', '-v'),
        )

    def test_nothing(self):
        self.assertEqual([], self.clean('none'))
        self.assertEqual([], self.clean())

    def test_what_it_does_not_know(self):
        """Of a driver that was another one's before nova-compute started."""
        error = self.assertRaises(exceptions.DeviceError, self.clean, 'format')
        self.assertIn("'format'", str(error))
