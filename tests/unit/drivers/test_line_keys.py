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

import types

import testtools

from nova_accel import exceptions
from nova_accel.drivers import line_keys
from nova_accel.model.devices import device_spec

_DRIVERS = {
    'pci': types.SimpleNamespace(line_keys=frozenset({'unit'})),
    'mdev': types.SimpleNamespace(
        line_keys=frozenset({'mdev_type', 'mdev_types'})
    ),
}


class TestCheck(testtools.TestCase):
    def check(self, line: str) -> None:
        [spec] = device_spec.parse([line], _DRIVERS)
        line_keys.check(spec, _DRIVERS)

    def test_keys_that_it_reads(self) -> None:
        self.check('{"vendor_id": "10de", "driver": "pci", "unit": "slot"}')
        self.check('{"vendor_id": "10de", "driver": "mdev", "mdev_type": "a"}')

    def test_keys_of_all_drivers(self) -> None:
        self.check(
            '{"vendor_id": "10de", "driver": "mdev", "pool": true, '
            '"sriov_numvfs": 4, "physical_network": "net"}'
        )

    def test_a_key_that_only_another_one_reads(self) -> None:
        error = self.assertRaises(
            exceptions.DeviceError,
            self.check,
            '{"vendor_id": "10de", "driver": "mdev", "unit": "slot"}',
        )
        self.assertEqual(
            '"unit" is not for the driver mdev, but for pci: remove the key, '
            'or name the right driver',
            str(error),
        )

    def test_a_key_that_no_installed_one_reads(self) -> None:
        error = self.assertRaises(
            exceptions.DeviceError,
            self.check,
            '{"vendor_id": "10de", "driver": "pci", "whole": true}',
        )
        self.assertIn('the driver pci: remove the key', str(error))
