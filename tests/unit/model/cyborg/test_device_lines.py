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

import json
from typing import Any

import testtools

from nova_accel.model.cyborg import device_lines
from nova_accel.model.devices import device_spec
from rig.cyborg import made_up

_DRIVERS = ('ascend', 'fpga_dfl', 'mdev', 'nic', 'nvme', 'pci', 'qat', 'xrt')


def _unit(
    resource_class: str, vendor: str = '8086', **changed: Any
) -> device_lines.LineUnit:
    return device_lines.LineUnit(
        (), resource_class, vendor, 'PCI', made_up.pci_info(0x3D)
    )._replace(**changed)


class TestWrite(testtools.TestCase):
    def write(self, *units: device_lines.LineUnit) -> list[dict[str, Any]]:
        """The lines, which nova-compute accepts."""
        lines = device_lines.write(units)
        device_spec.parse(lines, _DRIVERS)
        return [json.loads(line) for line in lines]

    def test_the_driver_of_each_kind(self) -> None:
        for resource_class, vendor, expected in (
            ('CUSTOM_QAT', '0x8086', {'driver': 'qat'}),
            ('FPGA', '0x8086', {'driver': 'fpga_dfl'}),
            ('FPGA', '10ee', {'driver': 'xrt'}),
            ('FPGA', '1bd4', {'driver': 'pci', 'type': 'FPGA'}),
            ('PGPU', '10de', {'driver': 'pci', 'type': 'GPU'}),
            ('CUSTOM_SSD', '1bd4', {'driver': 'nvme'}),
            ('CUSTOM_NIC', '8086', {'driver': 'pci', 'type': 'NIC'}),
            (
                'CUSTOM_PCI',
                '8086',
                {'driver': 'pci', 'resource_class': 'CUSTOM_PCI'},
            ),
        ):
            self.assertEqual(
                [{'address': '0000:3d:00.0', **expected}],
                self.write(_unit(resource_class, vendor)),
            )

    def test_a_network(self) -> None:
        info = made_up.pci_info(0x3D, physical_network='physnet0')
        self.assertEqual(
            [
                {
                    'address': '0000:3d:00.0',
                    'driver': 'nic',
                    'physical_network': 'physnet0',
                }
            ],
            self.write(_unit('CUSTOM_NIC', attach_info=info)),
        )

    def test_a_card_of_mediated_devices_has_one_line(self) -> None:
        traits = ('CUSTOM_NVIDIA_1EB8_T4_2B', 'OWNER_CYBORG')
        self.assertEqual(
            [
                {
                    'address': '0000:5e:00.0',
                    'driver': 'mdev',
                    'mdev_type': 'nvidia-223',
                    'traits': ['CUSTOM_NVIDIA_1EB8_T4_2B'],
                }
            ],
            self.write(
                *(
                    _unit(
                        'VGPU',
                        '10de',
                        traits=traits,
                        attach_type='MDEV',
                        attach_info=made_up.mdev_info(0x5E, number),
                    )
                    for number in range(16)
                )
            ),
        )

    def test_in_the_order_of_addresses(self) -> None:
        lines = self.write(
            *(
                _unit('CUSTOM_QAT', attach_info=made_up.pci_info(bus))
                for bus in (0x3D, 0x1A)
            )
        )
        self.assertEqual(
            ['0000:1a:00.0', '0000:3d:00.0'],
            [line['address'] for line in lines],
        )

    def test_no_device_has_no_line(self) -> None:
        self.assertEqual([], self.write(_unit('FPGA', attach_type='TEST_PCI')))
