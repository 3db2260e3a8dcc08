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

"""Mistakes in ``[nova_accel] device_spec``."""

import json
from typing import Any

import testscenarios

from nova_accel import exceptions
from nova_accel.model.devices import device_spec
from unit.mistakes import base

_mistake = base.mistake

#: The drivers that are installed.
_DRIVERS = ('fpga_dfl', 'mdev', 'pci')


class TestLine(testscenarios.WithScenarios, base.MistakeTestCase):
    """nova-compute does not start, and says why."""

    line: str | dict[str, Any]

    scenarios = [
        _mistake(
            'single quotes',
            "{'vendor_id': '8086'}",
            'not JSON: Expecting property name enclosed in double quotes',
            line="{'vendor_id': '8086'}",
        ),
        _mistake(
            'a list',
            '[1]',
            'it must be a JSON object, such as {"vendor_id": ...}',
            line='[1]',
        ),
        _mistake(
            'a misspelt key',
            'unknown key "drivr" (did you mean "driver"?)',
            'the keys are address, clean, ',
            line={'vendor_id': '8086', 'drivr': 'pci'},
        ),
        _mistake(
            'no driver',
            '{"vendor_id": "8086"}',
            '"driver" is needed',
            line={'vendor_id': '8086'},
        ),
        _mistake(
            'all devices of the host',
            '{"driver": "pci"}',
            '"vendor_id" or "address" is needed',
            line={'driver': 'pci'},
        ),
        _mistake(
            'an id with 0x',
            '"vendor_id" has "0x8086"',
            'must be four hexadecimal digits, or "*" for any',
            line={'vendor_id': '0x8086', 'driver': 'pci'},
        ),
        _mistake(
            'an address without its function',
            '"address" has "0000:3d:00"',
            'must be a PCI address, such as "0000:3d:00.0"',
            line={'address': '0000:3d:00', 'driver': 'pci'},
        ),
        _mistake(
            'a type that does not exist',
            '"type" has "FGPA"',
            'must be one of "AICHIP", "FPGA", "GPU"',
            line={'vendor_id': '8086', 'driver': 'pci', 'type': 'FGPA'},
        ),
        _mistake(
            'the standard resource class',
            '"resource_class" has "FPGA"',
            'leave it out for the standard class of the "type"',
            line={
                'vendor_id': '8086',
                'driver': 'pci',
                'resource_class': 'FPGA',
            },
        ),
        _mistake(
            'a trait in lower case',
            '"traits" has "CUSTOM_rack_7"',
            'must be a list of different traits, each of them CUSTOM_ and '
            'upper-case letters',
            line={
                'vendor_id': '8086',
                'driver': 'pci',
                'traits': ['CUSTOM_rack_7'],
            },
        ),
        _mistake(
            'a pool in capitals',
            '"pool" has "NUMA"',
            'must be one of false, true, "numa", "link"',
            line={'vendor_id': '8086', 'driver': 'pci', 'pool': 'NUMA'},
        ),
        _mistake(
            'a driver that is not installed',
            "unknown driver 'gpu'",
            'the installed drivers are fpga_dfl, mdev, pci',
            line={'vendor_id': '10de', 'driver': 'gpu'},
        ),
        _mistake(
            'no units of a type',
            '"mdev_types" has 0',
            'must be an object with 1 to 1024 units of each type',
            line={
                'vendor_id': '10de',
                'driver': 'mdev',
                'mdev_types': {'nvidia-592': 0},
            },
        ),
        _mistake(
            'no command for cleaning',
            '"clean": "command"',
            'and "clean_command" need each other',
            line={'vendor_id': '8086', 'driver': 'pci', 'clean': 'command'},
        ),
        _mistake(
            'one number for two devices',
            'two devices of "module_ids"',
            'have the same number',
            line={
                'vendor_id': '10de',
                'driver': 'pci',
                'module_ids': {'0000:1b:00.0': 1, '0000:1c:00.0': 1},
            },
        ),
    ]

    def test_it_is_told(self) -> None:
        line = (
            self.line if isinstance(self.line, str) else json.dumps(self.line)
        )
        error = self.assertRaises(
            exceptions.InvalidDeviceSpec, device_spec.parse, [line], _DRIVERS
        )
        self.assertTrue(
            str(error).startswith(f'[nova_accel] device_spec = {line}: ')
        )
        self.assert_told(str(error))
