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

import pathlib
import time

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.drivers import device_cleaning
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs

ADDRESS = pci_address.PciAddress.parse('0000:3d:00.0')


class TestReset(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.fake.set(ADDRESS, reset='', reset_method='flr bus')
        self.written = []
        self.fake.on_write['reset'] = lambda *what: self.written.append(what)

    def test_reset(self):
        device_cleaning.reset(self.fake.sysfs, ADDRESS)
        self.assertEqual([(ADDRESS, '1')], self.written)

    def test_an_old_kernel(self):
        other = pci_address.PciAddress(0, 0x3D, 0, 1)
        self.fake.set(other, reset='')
        device_cleaning.reset(self.fake.sysfs, other)
        self.assertEqual([(other, '1')], self.written)

    def test_what_is_no_reset(self):
        for methods in ('', 'pm', 'pm bus'):
            self.fake.set(ADDRESS, reset_method=methods)
            error = self.assertRaises(
                exceptions.DeviceError,
                device_cleaning.reset,
                self.fake.sysfs,
                ADDRESS,
            )
            self.assertIn(f'reset_method is {methods!r}', str(error))
        self.assertEqual([], self.written)

    def test_a_function_that_has_none(self):
        other = pci_address.PciAddress(0, 0x3D, 0, 1)
        self.fake.set(other)
        self.assertRaises(
            exceptions.DeviceError,
            device_cleaning.reset,
            self.fake.sysfs,
            other,
        )

    def test_it_does_not_come_back(self):
        def refuse(_address, _value):
            raise OSError(25, 'Inappropriate ioctl for device')

        self.fake.on_write['reset'] = refuse
        error = self.assertRaises(
            exceptions.DeviceError,
            device_cleaning.reset,
            self.fake.sysfs,
            ADDRESS,
        )
        self.assertIn('Inappropriate', str(error))

    def test_it_does_not_answer_after_it(self):
        self.fake.on_write['reset'] = lambda *_what: self.fake.lose(ADDRESS)
        error = self.assertRaises(
            exceptions.DeviceError,
            device_cleaning.reset,
            self.fake.sysfs,
            ADDRESS,
        )
        self.assertIn(f'{ADDRESS} does not answer', str(error))


class TestCheckReset(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())

    def check(self, others=()):
        device_cleaning.check_reset(
            self.fake.sysfs, [ADDRESS], [ADDRESS, *others]
        )

    def assert_refused(self, *others):
        error = self.assertRaises(exceptions.DeviceError, self.check, others)
        self.assertIn(str(ADDRESS), str(error))
        self.assertIn('remove "clean": "reset" from the line', str(error))

    def test_functions_that_can_be_reset(self):
        self.check()
        for methods in ('flr', 'flr bus', 'device_specific', 'bus'):
            self.fake.set(ADDRESS, reset_method=methods)
            self.check([pci_address.PciAddress(0, 0x3E, 0, 0)])

    def test_one_without_any_method(self):
        """As function 0 of a V80: it has neither file."""
        self.fake.set(ADDRESS, vendor='0x10ee')
        self.assert_refused()
        self.fake.set(ADDRESS, reset='')
        self.check()

    def test_methods_that_are_no_reset(self):
        for methods in ('', 'pm', 'pm bus'):
            self.fake.set(ADDRESS, reset_method=methods)
            self.assert_refused()

    def test_the_bus_of_others(self):
        self.fake.set(ADDRESS, reset_method='bus')
        self.assert_refused(pci_address.PciAddress(0, 0x3D, 0, 1))
        self.assert_refused(pci_address.PciAddress(0, 0x3D, 1, 0))


class TestRun(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def script(self, text):
        path = self.directory / 'clean'
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        return str(path)

    def assert_refused(self, text, *command):
        error = self.assertRaises(
            exceptions.DeviceError, device_cleaning.run, command, ADDRESS
        )
        for part in (str(ADDRESS), command[0], text):
            self.assertIn(part, str(error))

    def test_the_address_is_added_and_there_is_no_shell(self):
        seen = self.directory / 'seen'
        device_cleaning.run(
            (self.script('printf "%s\\n" "$@" >"$1"'), str(seen), '$HOME; *'),
            ADDRESS,
        )
        self.assertEqual(
            [str(seen), '$HOME; *', str(ADDRESS)],
            seen.read_text().splitlines(),
        )

    def test_exit_status(self):
        self.assert_refused(
            'exit status 3, no', self.script('echo no >&2; exit 3')
        )

    def test_not_there(self):
        self.assert_refused('clean', str(self.directory / 'clean'))

    def test_too_long(self):
        """What it has started ends with it."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.drivers.device_cleaning.COMMAND_TIMEOUT_S', 0.5
            )
        )
        child = self.directory / 'child'
        self.assert_refused(
            'not finished after 0.5 s',
            self.script(f'sleep 60 & echo $! >{child}; wait'),
        )
        state = pathlib.Path('/proc', child.read_text().strip(), 'stat')
        for _time in range(100):
            # Whoever adopted it may be slow to bury it.
            if not state.exists() or ') Z ' in state.read_text():
                return
            time.sleep(0.1)
        self.fail('it still runs')
