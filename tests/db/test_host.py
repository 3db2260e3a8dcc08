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

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model import host_orders
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

TWO_FPGAS = reports.SimulatedHost(regions=(2, 1), functions=3)
FINDING = finding.Finding(finding.Kind.MDEV, 'it was no one\'s')
SECOND_REMOVED = reports.SimulatedHost(regions=(2, None), functions=3)


class TestReport(base.DatabaseTestCase):
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

    def reported(
        self,
        rp_uuids: Mapping[tuple[str, str], str],
    ) -> list[dict[str, Any]]:
        return [
            found.to_report(TWO_FPGAS.node_uuid, rp_uuids)
            for found in TWO_FPGAS.devices()
        ]

    def hold(
        self, host_: reports.SimulatedHost, bus: int
    ) -> host_arqs.AcquireRequest:
        """Let an instance hold a region of the FPGA."""
        self.make_profile()
        request = self.request(host_.allocated(bus=bus))
        host_arqs.acquire(request)
        return request

    def test_all_is_noted(self) -> None:
        """Each fact of the report is in the column of its name."""
        told = reports.SimulatedHost(
            regions=(2, 1), functions=3, cleaned=True, faults=((1, 'hot'),)
        )
        devices = told.reported()
        for number, deployable in enumerate(
            deployable
            for found in devices
            for deployable in found['deployables']
        ):
            deployable['bitstream_id'] = (
                f'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f000{number}'
            )
        host.report(
            'compute-1', told.node_uuid, 'compute-1.service', devices, 'digest'
        )
        [known] = self.rows(schema.HOSTS)
        self.assertEqual(
            ('compute-1', told.node_uuid, 'compute-1.service', 'digest'),
            (
                known['hostname'],
                known['node_uuid'],
                known['service_host'],
                known['report_digest'],
            ),
        )
        deployables = [
            deployable
            for found in devices
            for deployable in found.pop('deployables')
        ]
        handles = [
            handle
            for deployable in deployables
            for handle in deployable.pop('attach_handles')
        ]
        for facts, table in (
            (devices, schema.DEVICES),
            (deployables, schema.DEPLOYABLES),
            (handles, schema.ATTACH_HANDLES),
        ):
            self.assertEqual(
                facts,
                [
                    {name: row[name] for name in fact}
                    for fact, row in zip(facts, self.rows(table), strict=True)
                ],
            )
        self.assertEqual(
            {'enabled'}, {row['status'] for row in self.rows(schema.DEVICES)}
        )

    def test_unchanged_is_one_statement(self) -> None:
        TWO_FPGAS.report()
        before = self.everything()
        [statement] = self.statements(lambda: TWO_FPGAS.report(0))
        self.assertIn('UPDATE hosts', statement)
        del before['hosts']
        after = self.everything()
        del after['hosts']
        self.assertEqual(before, after)

    def test_another_digest_of_the_same_changes_nothing(self) -> None:
        TWO_FPGAS.report()
        before = self.everything()
        host.report(
            'compute-1',
            TWO_FPGAS.node_uuid,
            'compute-1.service',
            self.reported(TWO_FPGAS.layout().rp_uuids),
            'another',
        )
        after = self.everything()
        self.assertEqual('another', after.pop('hosts')[0]['report_digest'])
        del before['hosts']
        self.assertEqual(before, after)

    def test_an_upgraded_host_has_another_contract(self) -> None:
        """It is noted even where nothing else of the report is new."""
        other = reports.SimulatedHost('compute-2', contract=0)
        other.report()
        for contract in (0, 1, 1, 0):
            self.tell(contract)
            self.assertEqual(
                [
                    ('compute-1', contract),
                    ('compute-2', 0),
                ][contract:],
                host.get_contracts(1),
            )
            self.assertEqual([], host.get_contracts(0))

    def tell(self, contract: int) -> None:
        """As the client does, which sends devices only where they help."""
        facts: dict[str, Any] = {
            'hostname': 'compute-1',
            'node_uuid': TWO_FPGAS.node_uuid,
            'service_host': 'compute-1.service',
            'digest': 'digest',
            'orders_seen': 0,
            'contract': contract,
        }
        try:
            host.report(devices=None, **facts)
        except exceptions.NotFound:
            host.report(devices=TWO_FPGAS.reported(), **facts)

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
        devices = self.reported(
            {
                place: moved if place[0] == 'pci_0000_01_00_0' else rp_uuid
                for place, rp_uuid in TWO_FPGAS.layout().rp_uuids.items()
            }
        )

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
                # But for the orders, which say whether any is unadopted.
                and not statement.startswith('SELECT hosts.orders')
            ],
        )

    def test_nothing_of_another_host(self) -> None:
        """The host that has it is named, and nothing is changed."""
        TWO_FPGAS.report()
        other = reports.SimulatedHost('compute-2')
        other.report()
        before = self.everything()
        [own] = other.reported()
        device, *_others = TWO_FPGAS.reported()
        [deployable] = own['deployables']
        of_first = device['deployables'][0]
        handle = of_first['attach_handles'][0]

        def with_(**fields: Any) -> list[dict[str, Any]]:
            return [{**own, 'deployables': [{**deployable, **fields}]}]

        for devices, node_uuid, what in (
            (
                [own],
                TWO_FPGAS.node_uuid,
                f'compute node {TWO_FPGAS.node_uuid}',
            ),
            ([device], other.node_uuid, f'device {device["uuid"]}'),
            (
                with_(rp_uuid=of_first['rp_uuid']),
                other.node_uuid,
                f'resource provider {of_first["rp_uuid"]}',
            ),
            (
                with_(rp_uuid=TWO_FPGAS.node_uuid),
                other.node_uuid,
                f'compute node {TWO_FPGAS.node_uuid}',
            ),
            (
                with_(attach_handles=[handle]),
                other.node_uuid,
                f'attach handle {handle["uuid"]}',
            ),
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                host.report,
                'compute-2',
                node_uuid,
                'compute-2',
                devices,
                'digest',
            )
            self.assertEqual(
                f'{what} belongs to host compute-1: if that is a former name '
                'of compute-2, have "nova-accel-manage host forget" forget it',
                str(error),
            )
            self.assertEqual(before, self.everything())

    def test_attach_handle_of_another_host(self) -> None:
        TWO_FPGAS.report()
        other = reports.SimulatedHost('compute-2', contract=0)
        [device] = [
            found.to_report(other.node_uuid, other.layout().rp_uuids)
            for found in other.devices()
        ]
        stolen = self.rows(schema.ATTACH_HANDLES)[0]['uuid']
        device['deployables'][0]['attach_handles'][0]['uuid'] = stolen
        self.assertRaises(
            exceptions.Conflict,
            host.report,
            'compute-2',
            other.node_uuid,
            'compute-2',
            [device],
            'digest',
        )
        self.assertEqual(1, len(self.rows(schema.HOSTS)))

    def test_simultaneous_first_reports(self) -> None:
        self.assertEqual(
            [host_orders.Orders(0)] * base.RACERS,
            base.race([TWO_FPGAS.report] * base.RACERS),
        )
        self.assertEqual(5, len(self.inventory()['devices']))
        self.assertEqual({'compute-1': 6}, capacity.free_by_host())


class TestForget(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = dataclasses.replace(TWO_FPGAS, findings=(FINDING,))
        self.make_profile()
        reports.SimulatedHost(
            'compute-2', contract=0, findings=(FINDING,)
        ).report()
        self.without = self.everything()
        self.host.report()
        host_arqs.acquire(self.request(self.host.allocated(bus=1)))

    def test_only_its_own_goes(self) -> None:
        self.assertEqual(
            {
                'attach_handles': 6,
                'arqs': 1,
                'deployables': 6,
                'devices': 5,
                'bindings': 1,
                'findings': 1,
                'hosts': 1,
            },
            host.forget('compute-1', -1),
        )
        self.assertEqual(self.without, self.everything())

    def test_a_dry_run(self) -> None:
        before = self.everything()
        would = host.forget('compute-1', -1, is_dry_run=True)
        self.assertEqual(before, self.everything())
        self.assertEqual(would, host.forget('compute-1', -1))

    def test_what_each_host_has(self) -> None:
        self.assertEqual(
            [
                ('compute-1', 'compute-1.service', 5, 6, None, False),
                ('compute-2', 'compute-2.service', 1, 1, None, False),
            ],
            [
                (
                    row['hostname'],
                    row['service_host'],
                    row['devices'],
                    row['units'],
                    row['drain_reason'],
                    bool(row['is_silent']),
                )
                for row in host.get_summaries(180)
            ],
        )

    def test_not_while_it_reports(self) -> None:
        before = self.everything()
        error = self.assertRaises(
            exceptions.Conflict, host.forget, 'compute-1', 180
        )
        self.assertIn('compute-1', str(error))
        error = self.assertRaises(
            exceptions.NotFound, host.forget, 'compute-9', 180
        )
        self.assertIn('compute-9', str(error))
        self.assertEqual(before, self.everything())

    def test_a_report_at_the_same_time(self) -> None:
        """It comes before, or it is that of a new host."""
        for _again in range(3):
            base.race([self.host.report, lambda: host.forget('compute-1', -1)])
            self.host.report()
            self.assertEqual(7, len(self.rows(schema.ATTACH_HANDLES)))
            self.assert_consistent()

    def test_the_clocks_of_api_servers_do_not_matter(self) -> None:
        """Each of them writes and compares the database's time."""
        for minutes in (-60, 60):
            here = schema.now() + datetime.timedelta(minutes=minutes)
            with fixtures.MonkeyPatch(
                'nova_accel.db.sql.schema.now', lambda now=here: now
            ):
                self.host.report()
            self.assertEqual(
                [False, False], [row['is_silent'] for row in host.get_all(180)]
            )
            with fixtures.MonkeyPatch(
                'nova_accel.db.sql.schema.now', lambda now=here: now
            ):
                self.assertEqual(
                    [False, False],
                    [row['is_silent'] for row in host.get_all(180)],
                )

    def test_a_host_is_silent_after_so_many_seconds(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(120))
            )
        for silence_s, is_silent in ((110, True), (130, False)):
            self.assertEqual(
                [is_silent] * 2,
                [row['is_silent'] for row in host.get_all(silence_s)],
            )

    def test_the_database_tells_the_time_in_utc(self) -> None:
        with self.database.engine.connect() as connection:
            found = connection.scalar(sa.select(clock.ago(60)))
        assert found is not None
        minute = datetime.timedelta(minutes=1)
        self.assertTrue(
            minute - datetime.timedelta(seconds=5)
            <= schema.now() - found
            <= minute + datetime.timedelta(seconds=60)
        )

    def test_who_is_silent(self) -> None:
        found = {
            silence_s: [
                (row['hostname'], row['service_host'], row['is_silent'])
                for row in host.get_all(silence_s)
            ]
            for silence_s in (-1, 180)
        }
        for silence_s, is_silent in ((-1, True), (180, False)):
            self.assertEqual(
                [
                    (name, f'{name}.service', is_silent)
                    for name in ('compute-1', 'compute-2')
                ],
                found[silence_s],
            )
