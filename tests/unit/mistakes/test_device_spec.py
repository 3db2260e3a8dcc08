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
import pathlib
from typing import Any

import testscenarios

from nova_accel import exceptions
from nova_accel.cmd import device_spec as device_spec_command
from nova_accel.model.devices import device_spec
from nova_accel.testing import pci_functions
from unit.cmd import base as cmd_base
from unit.mistakes import base
from unit.virt.publishing import previewed

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
            'a key twice',
            'it has "vendor_id" twice',
            'each key has one value: remove one',
            line='{"vendor_id": "8086", "driver": "pci", "vendor_id": "10de"}',
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


class TestOnItsHost(testscenarios.WithScenarios, base.MistakeTestCase):
    """``device-spec check`` says it before nova-compute is restarted."""

    lines: tuple[dict[str, Any], ...]

    scenarios = [
        _mistake(
            'a mistyped vendor',
            'no device has "vendor_id": "8068"',
            'did you mean "8086"?',
            lines=({'vendor_id': '8068', 'driver': 'pci'},),
        ),
        _mistake(
            'a mistyped vendor of a right product',
            'no device has "vendor_id": "8068"',
            'with "product_id": "4940" there is 0000:3d:00.0 (8086:4940)',
            lines=(
                {'vendor_id': '8068', 'product_id': '4940', 'driver': 'qat'},
            ),
        ),
        _mistake(
            'an address of no card',
            'no device has "address": "0000:3e:00.0"',
            'did you mean "0000:3d:00.0"?',
            lines=({'address': '0000:3e:00.0', 'driver': 'pci'},),
        ),
        _mistake(
            'an address of another card',
            'no device has all of "address": "0000:19:00.0"',
            'there is 0000:19:00.0 (10de:2331)',
            lines=(
                {
                    'address': '0000:19:00.0',
                    'product_id': '4940',
                    'driver': 'qat',
                },
            ),
        ),
        _mistake(
            'a narrow line behind a wide one',
            'Line 2: 0000:19:00.0 shadowed: line 1 matches too',
            'put the narrower one first, or remove one',
            lines=(
                {'vendor_id': '10de', 'driver': 'pci'},
                {'address': '0000:19:00.0', 'driver': 'nvidia_gpu'},
            ),
        ),
        _mistake(
            'more virtual functions than there can be',
            'its line asks for 32 virtual functions',
            'it can have 16',
            lines=(
                {'vendor_id': '8086', 'driver': 'qat', 'sriov_numvfs': 32},
            ),
        ),
        _mistake(
            'the driver of another vendor',
            '10de:2331 is no device of',
            'Intel or AMD',
            lines=({'vendor_id': '10de', 'driver': 'gpu_sriov'},),
        ),
    ]

    def test_it_is_told(self) -> None:
        host = self.useFixture(
            previewed.Previewed(
                [
                    pci_functions.function('0000:19:00.0', '10de', '2331'),
                    pci_functions.function(
                        '0000:3d:00.0',
                        '8086',
                        '4940',
                        max_virtual_functions=16,
                    ),
                ]
            )
        )
        path = pathlib.Path(host.state, 'lines.conf')
        path.write_text(
            '[nova_accel]\n'
            + ''.join(
                f'device_spec = {json.dumps(line)}\n' for line in self.lines
            )
        )
        status, text = cmd_base.run_command(
            device_spec_command.Check, 'device-spec check', str(path)
        )
        self.assertEqual(1, status, text)
        self.assert_told(text)
