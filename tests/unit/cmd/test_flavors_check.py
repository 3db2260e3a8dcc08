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

import fixtures
from nova import objects

from nova_accel.db import device_profile
from nova_accel.model.devices import hardware
from nova_accel.testing import reports
from unit.cmd import check_base

Check = check_base.Check

_TIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class _GpuHost(reports.SimulatedHost):
    """Its cards are GPUs of a class that its operator has named."""

    def devices(self) -> list[hardware.Device]:
        return [
            dataclasses.replace(
                device,
                type='GPU',
                deployables=tuple(
                    dataclasses.replace(
                        deployable, resource_class='CUSTOM_H100'
                    )
                    for deployable in device.deployables
                ),
            )
            for device in super().devices()
        ]


class FlavorsTestCase(check_base.CheckTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sync()

    def add(self, name: str, memory_mib: int, **facts: object) -> None:
        self.flavors.append(
            objects.Flavor(
                name=name,
                memory_mb=memory_mib,
                **{'disabled': False, 'extra_specs': {}, **facts},
            )
        )

    def cannot_be_read(self, number: Check) -> None:
        def fail(*_args: object, **_options: object) -> None:
            raise OSError('no route to the database')

        with fixtures.MonkeyPatch(check_base.FLAVORS, fail):
            code, results = self.check()
        self.assertEqual(1, code)
        self.assertIn('no route', results[number]['details'])
        self.assertIn('[api_database]', results[number]['details'])


class TestAddresses(FlavorsTestCase):
    def add_with(self, name: str, profile: str, **specs: str) -> None:
        self.add(
            name,
            _TIB,
            extra_specs={'nova_accel:device_profile': profile, **specs},
        )

    def test_flavors_are_named(self) -> None:
        device_profile.create('gpu', [{'resources:PGPU': '1'}])
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        self.add_with('set', 'gpu', **{'hw:maxphysaddr_mode': 'emulate'})
        self.add_with('other', 'fpga')
        self.add_with('lost', 'no-such-profile')
        self.add('plain', _TIB)
        self.assertEqual(0, self.check()[0])
        for number in range(12):
            self.add_with(f'gpu-{number:02}', 'gpu')
        self.assert_result(
            1, Check.ADDRESSES, 'gpu-08, gpu-09 and 2 more. By default'
        )

    def test_no_server_can_be_created_with_a_disabled_one(self) -> None:
        self.add(
            'old', _TIB, disabled=True, extra_specs={'resources:PGPU': '1'}
        )
        self.assertEqual(0, self.check()[0])

    def test_a_class_that_only_hosts_know(self) -> None:
        device_profile.create('h100', [{'resources:CUSTOM_H100': '8'}])
        self.add_with('h100', 'h100')
        self.assertEqual(0, self.check()[0])
        _GpuHost().report()
        self.assert_result(1, Check.ADDRESSES, 'h100')

    def test_they_cannot_be_read(self) -> None:
        self.cannot_be_read(Check.ADDRESSES)


class TestKeys(FlavorsTestCase):
    def test_a_hyphen(self) -> None:
        self.add(
            'right', 64, extra_specs={'nova_accel:device_profile': 'fpga'}
        )
        self.assertEqual(0, self.check()[0])
        self.add(
            'wrong', 64, extra_specs={'nova-accel:device_profile': 'fpga'}
        )
        self.assert_result(
            1,
            Check.KEYS,
            'wrong (nova-accel:device_profile, which is to be '
            'nova_accel:device_profile)',
        )

    def test_they_cannot_be_read(self) -> None:
        self.cannot_be_read(Check.KEYS)
