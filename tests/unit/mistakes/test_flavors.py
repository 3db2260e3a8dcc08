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

"""Mistakes in flavors."""

from nova import objects
import testscenarios

from unit.cmd import check_base
from unit.mistakes import base

_mistake = base.mistake


class TestKey(
    testscenarios.WithScenarios, check_base.CheckTestCase, base.MistakeTestCase
):
    """Nova ignores the key, and the server has no accelerators."""

    key: str

    scenarios = [
        _mistake(
            'a hyphen in our key',
            'small (nova-accel:device_profile',
            'which is to be nova_accel:device_profile',
            key='nova-accel:device_profile',
        ),
        _mistake(
            "a hyphen in Cyborg's key",
            'small (accel:device-profile',
            'which is to be accel:device_profile',
            key='accel:device-profile',
        ),
        _mistake(
            'a letter too few',
            'small (nova_acel:device_profile',
            'which is to be nova_accel:device_profile',
            key='nova_acel:device_profile',
        ),
        _mistake(
            'a key that no one knows',
            'small (nova_accel:count',
            'which is none of nova_accel:device_profile',
            key='nova_accel:count',
        ),
        _mistake(
            'a value that no one knows',
            'small (nova_accel:pci_topology=gold',
            'which can be flat or host',
            key='nova_accel:pci_topology',
        ),
    ]

    def test_it_is_told(self) -> None:
        self.sync()
        self.flavors.append(
            objects.Flavor(
                name='small',
                memory_mb=64,
                disabled=False,
                extra_specs={self.key: 'gold'},
            )
        )
        code, results = self.check()
        self.assertEqual(1, code)
        self.assert_told(results[check_base.Check.KEYS]['details'])
