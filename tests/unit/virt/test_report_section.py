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

import testtools

from nova_accel.model import host_orders
from nova_accel.model.providers import host_view
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports
from nova_accel.virt import report_section

HOST = reports.SimulatedHost('compute-1', (1, 2, 1), faults=((0, 'on\nfire'),))
NODE = host_view.Node('compute-1', HOST.node_uuid, 'compute-1.service')


class FactsTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.devices = tuple(HOST.devices())
        self.current = host_view.CurrentState(
            host_view.View(
                HOST.node_uuid,
                self.devices,
                provider_layout.layout(
                    'compute-1', HOST.node_uuid, self.devices
                ),
            )
        )

    def test_before_the_first_answer(self) -> None:
        facts = report_section.facts(NODE, self.current)
        self.assertEqual('compute-1', facts['host'])
        self.assertEqual('none came', facts['orders of the API'])
        self.assertEqual({'FPGA': 4}, facts['units'])
        faulty, large, _other = facts['devices'].values()
        self.assertTrue(faulty.endswith('1 units, faulty: on\\nfire'), faulty)
        self.assertTrue(large.endswith('2 units'), large)

    def test_disabled(self) -> None:
        self.current.orders = host_orders.Orders(
            7, frozenset({HOST.device_uuid(1)})
        )
        facts = report_section.facts(NODE, self.current)
        self.assertEqual('revision 7', facts['orders of the API'])
        _faulty, large, _other = facts['devices'].values()
        self.assertTrue(large.endswith('2 units, disabled'), large)

    def test_a_part_that_is_broken(self) -> None:
        device = self.devices[2]
        [deployable] = device.deployables
        self.current.view = host_view.View(
            HOST.node_uuid,
            (
                dataclasses.replace(
                    device,
                    deployables=(
                        dataclasses.replace(deployable, fault='CRC error'),
                    ),
                ),
            ),
        )
        [told] = report_section.facts(NODE, self.current)['devices'].values()
        self.assertIn('faulty: CRC error', told)

    def test_no_more_than_somebody_reads(self) -> None:
        self.current.view = host_view.View(
            HOST.node_uuid,
            tuple(
                dataclasses.replace(self.devices[0], name=f'pci_{number}')
                for number in range(report_section.MAX_DEVICES + 3)
            ),
        )
        told = report_section.facts(NODE, self.current)['devices']
        self.assertEqual(report_section.MAX_DEVICES + 1, len(told))
        self.assertEqual(3, told['left out'])
