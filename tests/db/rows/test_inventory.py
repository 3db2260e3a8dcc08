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

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

TWO_FPGAS = reports.SimulatedHost(regions=(2, 1), functions=3)
SECOND_REMOVED = reports.SimulatedHost(regions=(2, None), functions=3)


class TestReplace(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def inventory(self) -> dict[str, list[str]]:
        """Uuids of what is known, by table."""
        return {
            table.name: sorted(row['uuid'] for row in self.rows(table))
            for table in (
                schema.DEVICES,
                schema.DEPLOYABLES,
                schema.ATTACH_HANDLES,
            )
        }

    def hold(
        self, host_: reports.SimulatedHost, bus: int
    ) -> host_arqs.AcquireRequest:
        """Let an instance hold a region of the FPGA."""
        self.make_profile()
        request = self.request(host_.allocated(bus=bus))
        host_arqs.acquire(request)
        return request

    def test_devices_come_and_go(self) -> None:
        TWO_FPGAS.report()
        both = self.inventory()
        SECOND_REMOVED.report()
        self.assertEqual({'compute-1': 5}, capacity.free_by_host())
        self.assertEqual(4, len(self.inventory()['devices']))
        TWO_FPGAS.report()
        self.assertEqual(both, self.inventory())
        reports.SimulatedHost(regions=()).report()
        self.assertEqual(
            {'devices': [], 'deployables': [], 'attach_handles': []},
            self.inventory(),
        )

    def test_facts_of_a_device_change(self) -> None:
        TWO_FPGAS.report()
        dataclasses.replace(TWO_FPGAS, numa_node=1).report()
        rows = self.rows(schema.DEVICES)
        self.assertEqual({1}, {row['numa_node'] for row in rows})
        self.assertNotIn(None, {row['updated_at'] for row in rows})

    def test_other_hosts_are_left_alone(self) -> None:
        reports.SimulatedHost('compute-2', regions=(3,)).report()
        TWO_FPGAS.report()
        reports.SimulatedHost(regions=()).report()
        self.assertEqual({'compute-2': 3}, capacity.free_by_host())

    def test_held_device_stays_until_it_is_released(self) -> None:
        TWO_FPGAS.report()
        both = self.inventory()
        request = self.hold(TWO_FPGAS, bus=1)
        for _again in range(2):
            SECOND_REMOVED.report()
            self.assertEqual(both, self.inventory())
            self.assertEqual('Bound', host_arqs.get(*request.key)[0]['state'])
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual({'compute-1': 5}, capacity.free_by_host())
        SECOND_REMOVED.report()
        self.assertEqual(4, len(self.inventory()['devices']))
        self.assertEqual(5, len(self.inventory()['attach_handles']))

    def test_held_device_comes_back(self) -> None:
        TWO_FPGAS.report()
        both = self.inventory()
        request = self.hold(TWO_FPGAS, bus=1)
        SECOND_REMOVED.report()
        TWO_FPGAS.report()
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual(both, self.inventory())
        self.assertEqual({'compute-1': 6}, capacity.free_by_host())

    def test_removed_device_is_not_handed_out(self) -> None:
        TWO_FPGAS.report()
        request = self.hold(TWO_FPGAS, bus=1)
        SECOND_REMOVED.report()
        self.assertRaises(
            exceptions.AcceleratorsBusy,
            host_arqs.acquire,
            self.request(TWO_FPGAS.allocated(bus=1)),
        )
        host_arqs.release(*request.key, attempt=1)
        SECOND_REMOVED.report()
        self.assertRaises(
            exceptions.NotFound,
            host_arqs.acquire,
            self.request(TWO_FPGAS.allocated(bus=1)),
        )

    def test_arqs_follow_their_attach_handles(self) -> None:
        """A reshape has moved the allocation to another provider."""
        TWO_FPGAS.report()
        request = self.hold(TWO_FPGAS, bus=1)
        other = self.request(TWO_FPGAS.allocated())
        [bound] = host_arqs.acquire(other)
        moved = uuidutils.generate_uuid()
        rp_uuids = {
            place: moved if place[0] == 'pci_0000_01_00_0' else rp_uuid
            for place, rp_uuid in TWO_FPGAS.layout().rp_uuids.items()
        }
        devices = [
            found.to_report(TWO_FPGAS.node_uuid, rp_uuids)
            for found in TWO_FPGAS.devices()
        ]

        def report() -> None:
            host.report(
                'compute-1',
                TWO_FPGAS.node_uuid,
                'compute-1.service',
                devices,
                'another',
            )

        self.assertEqual(
            1,
            len(
                [
                    statement
                    for statement in self.statements(report)
                    if statement.startswith('UPDATE arqs')
                ]
            ),
        )
        self.assertEqual(
            moved, host_arqs.get(*request.key)[0]['device_rp_uuid']
        )
        self.assertEqual([bound], host_arqs.get(*other.key))
        dataclasses.replace(TWO_FPGAS, numa_node=1).report()
        self.assertEqual(
            TWO_FPGAS.rp_uuid(1),
            host_arqs.get(*request.key)[0]['device_rp_uuid'],
        )

    def test_arqs_are_not_touched_if_no_provider_changed(self) -> None:
        TWO_FPGAS.report()
        self.hold(TWO_FPGAS, bus=1)
        changed = dataclasses.replace(TWO_FPGAS, faults=((1, 'hot'),))
        self.assertEqual(
            [],
            [
                statement
                for statement in self.statements(changed.report)
                if 'arqs' in statement
                # But for the orders, which say whether any is unadopted, and
                # for those whom the fault concerns.
                and not statement.startswith(
                    ('SELECT hosts.orders', 'SELECT arqs.uuid')
                )
            ],
        )
