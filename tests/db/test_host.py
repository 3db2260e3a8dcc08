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
import datetime
import functools
from typing import Any

import fixtures
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import draining
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.rows import judged_arqs
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model import host_contract
from nova_accel.model import host_orders
from nova_accel.model.units import unit_health
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

TWO_FPGAS = reports.SimulatedHost(regions=(2, 1), functions=3)
FINDING = finding.Finding(finding.Kind.MDEV, 'it was nobody\'s')


class TestReport(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

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
            TWO_FPGAS.reported(),
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

    def test_simultaneous_first_reports(self) -> None:
        self.assertEqual(
            [host_orders.Orders(0)] * base.RACERS,
            base.race([TWO_FPGAS.report] * base.RACERS),
        )
        self.assertEqual(5, len(self.rows(schema.DEVICES)))
        self.assertEqual({'compute-1': 6}, capacity.free_by_host())


class TestTurned(base.DatabaseTestCase):
    """Whose devices have just failed, or just work again."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2))
        self.host.report()
        self.make_profile()

    def turned(self, *faults: int, **fields: Any) -> list[tuple[str, bool]]:
        """The server and whether it has failed, of each ARQ."""
        told = dataclasses.replace(
            self.host, faults=tuple((bus, 'hot') for bus in faults), **fields
        ).tell()
        return [
            (
                arq['instance_uuid'],
                arq['health'].health is unit_health.Health.FAILED,
            )
            for arq in told.turned
        ]

    def hold(self, *where: int, **fields: Any) -> str:
        """The server that has a region."""
        request = self.request(self.host.allocated(*where), **fields)
        host_arqs.acquire(request)
        return request.instance_uuid

    def test_each_change_is_told_once(self) -> None:
        first = self.hold(0)
        others = [self.hold(1, number) for number in range(2)]
        for faults, expected in (
            ((), []),
            ((0,), [(first, True)]),
            ((0,), []),
            ((1,), [(first, False), *((uuid, True) for uuid in others)]),
            ((0, 1), [(first, True)]),
            ((), [(uuid, False) for uuid in (first, *others)]),
            ((), []),
        ):
            self.assertEqual(expected, self.turned(*faults))

    def test_other_words_of_a_fault(self) -> None:
        self.hold(0)
        self.turned(0)
        told = dataclasses.replace(self.host, faults=((0, 'hotter'),)).tell()
        self.assertEqual([], told.turned)

    def test_what_guests_have(self) -> None:
        """And no one else: neither hosts that move them, nor Nova alone."""
        roles = ('active', 'port', 'old', 'incoming')
        host_ = self.host = reports.SimulatedHost(regions=(5,))
        host_.report()
        uuids = [
            self.hold(0, number, role=role)
            for number, role in enumerate(roles)
        ]
        [arq] = self.make_arqs(1)
        client_arqs.bind({arq: self.place(host_.rp_uuid(0, 4))})
        self.make_arqs(1)
        self.assertEqual([(uuid, True) for uuid in uuids[:2]], self.turned(0))

    def test_a_unit_that_is_gone(self) -> None:
        stays, goes = (self.hold(1, number) for number in range(2))
        for regions, expected in (
            ((1, 1), [(goes, True)]),
            ((2, 1), []),
            ((2, None), [(stays, True)]),
            ((1, None), []),
            ((1, 2), [(stays, False), (goes, False)]),
            ((1, 2), []),
        ):
            self.assertEqual(expected, self.turned(regions=regions))

    def test_a_unit_that_is_gone_does_not_work_again(self) -> None:
        stays, goes = (self.hold(1, number) for number in range(2))
        both = [(stays, True), (goes, True)]
        self.assertEqual(both, self.turned(1, regions=(1, 1)))
        self.assertEqual([(stays, False)], self.turned(regions=(1, 1)))
        self.assertEqual([(stays, True)], self.turned(1))
        self.assertEqual([(stays, False), (goes, False)], self.turned())

    def test_words_for_a_unit_that_is_gone(self) -> None:
        self.hold(1)
        [arq] = dataclasses.replace(self.host, regions=(1,)).tell().turned
        self.assertEqual('the device is no longer there', arq['health'].reason)

    def test_a_unit_under_another_uuid(self) -> None:
        """It is not gone; and if it was, it is back."""
        server = self.hold(0)
        other = reports.SimulatedHost('other', (1, 2))

        def under_another_uuid(*buses: int) -> list[judged_arqs.JudgedRow]:
            devices = [other.reported()[bus] for bus in buses]
            return list(
                host.report(
                    self.host.hostname,
                    self.host.node_uuid,
                    self.host.service_host,
                    devices,
                    digest=f'renamed {buses}',
                ).turned
            )

        self.assertEqual([], under_another_uuid(0, 1))
        [arq] = under_another_uuid(1)
        self.assertEqual(server, arq['instance_uuid'])
        self.assertEqual([(server, False)], self.turned())

    def test_a_report_in_parts(self) -> None:
        uuids = [self.hold(bus) for bus in range(2)]
        broken = dataclasses.replace(self.host, faults=((0, 'a'), (1, 'b')))
        devices = broken.reported()
        for number, others in enumerate((None, [devices[0]['uuid']])):
            told = host.report(
                broken.hostname,
                broken.node_uuid,
                broken.service_host,
                devices[number : number + 1],
                'parts',
                part=number,
                others=others,
            )
            self.assertEqual(
                [uuids[number]], [arq['instance_uuid'] for arq in told.turned]
            )

    def test_statements(self) -> None:
        """One more for any number of devices, and none without a change."""
        self.host = reports.SimulatedHost(regions=(1,) * 9)
        self.host.report()
        for bus in range(8):
            self.hold(bus)
        counts = [
            len(self.statements(functools.partial(self.turned, *buses)))
            for buses in ((8,), (0, 1, 2, 3, 4, 5, 6, 7), ())
        ]
        self.assertEqual(counts[:1] * 3, counts)
        self.turned(1)
        unchanged = self.statements(lambda: self.turned(1, numa_node=1))
        self.assertEqual(counts[0] - 2, len(unchanged))
        for call, judging in (
            (lambda: self.turned(1, numa_node=2), 0),
            (self.turned, 1),
            (lambda: self.turned(regions=(1,)), 1),
            (lambda: self.turned(regions=(1,), numa_node=1), 0),
            (self.turned, 1),
        ):
            self.assertEqual(
                judging,
                sum(
                    'AS is_faulty' in statement
                    for statement in self.statements(call)
                ),
            )


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
        left = self.everything()
        # A bill is made of it.
        [*_others, period] = left.pop('held_periods')
        self.assertIsNotNone(period['ended_at'])
        without = {**self.without}
        del without['held_periods']
        self.assertEqual(without, left)

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

    def test_a_drain_that_is_announced(self) -> None:
        start = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
        draining.begin('compute-1', 'new fans', None, None, start)
        draining.begin('compute-2', 'more fans', None, None)
        self.assertEqual(
            [('new fans', start), ('more fans', None)],
            [
                (row['drain_reason'], row['announced_for'])
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

    def test_one_that_is_to_be_called(self) -> None:
        for silence_s, is_silent in ((-1, True), (180, False)):
            self.assertEqual(
                {
                    'hostname': 'compute-1',
                    'service_host': 'compute-1.service',
                    'contract': host_contract.NEWEST,
                    'is_silent': is_silent,
                },
                host.get_called('compute-1', silence_s),
            )
        self.assertIsNone(host.get_called('compute-1.service', 180))

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
