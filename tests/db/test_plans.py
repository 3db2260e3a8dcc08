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

"""How the databases find the rows of one server among those of all others."""

from collections.abc import Callable
import dataclasses
import datetime
import re
from typing import Any

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import client_arqs
from nova_accel.db import free_units
from nova_accel.db import host_arqs
from nova_accel.db import programming
from nova_accel.db.sql import schema
from nova_accel.model import paging
from nova_accel.model.units import unit_changes
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

_HOSTS = 3
_REGIONS = (8,) * 25

_LARGE = r'\b(arqs|earlier|attach_handles|deployables|held_periods)\b'

_EXPLAIN = {
    'sqlite': 'EXPLAIN QUERY PLAN ',
    'mysql': 'EXPLAIN ',
    'postgresql': 'EXPLAIN ',
}
_ANALYZE = {
    'sqlite': ['ANALYZE'],
    'postgresql': ['ANALYZE'],
    'mysql': [
        'ANALYZE TABLE arqs, attach_handles, deployables, devices, '
        'held_periods, hosts, programmings'
    ],
}


class TestPlans(base.DatabaseTestCase):
    """None of them reads all of a large table, or of an index of one."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.make_profile()
        for number in range(_HOSTS):
            self.make_noise(reports.SimulatedHost(f'used-{number}', _REGIONS))
            reports.SimulatedHost(f'free-{number}', _REGIONS).report()
        self.host.report()

    def test_life_of_a_server(self) -> None:
        instance_uuid = uuidutils.generate_uuid()
        request = self.request()

        def bound() -> str:
            [uuid] = self.make_arqs(1)
            client_arqs.bind({uuid: self.place(instance_uuid=instance_uuid)})
            return uuid

        def novas_cyborg_client() -> None:
            uuid = bound()
            client_arqs.get(uuid)
            client_arqs.get_of_instance(instance_uuid)
            client_arqs.get_all(
                instance_uuid=instance_uuid,
                page=paging.Page(limit=paging.MAX_LIMIT),
            )
            client_arqs.delete_by_uuids([uuid], bound_allowed=True)
            bound()
            client_arqs.delete_by_instance(instance_uuid)

        def host() -> None:
            self.host.report()
            host_arqs.acquire(request)
            host_arqs.get(*request.key)
            host_arqs.get_of_host(self.host.hostname)
            dataclasses.replace(self.host, faults=((0, 'hot'),)).report()
            host_arqs.release(*request.key, request.attempt)

        self.check(novas_cyborg_client)
        self.check(host)

    def test_list_of_programmings(self) -> None:
        with self.database.engine.begin() as connection:
            # As many as it pays off to look for the newest of.
            connection.execute(
                sa.insert(schema.PROGRAMMINGS),
                [
                    {
                        'uuid': uuidutils.generate_uuid(),
                        'hostname': 'compute-1',
                        'device_uuid': uuidutils.generate_uuid(),
                        'region': 'region0',
                        'bitstream_id': 'b' * 36,
                        'started_at': schema.now()
                        + datetime.timedelta(seconds=number),
                    }
                    for number in range(5000)
                ],
            )
        [(statement, values)] = self.statements_with_values(
            lambda: programming.get_all(paging.Page(limit=5))
        )
        with self.database.engine.connect() as connection:
            for analyze in _ANALYZE[self.backend]:
                connection.exec_driver_sql(analyze)
            steps = str(
                connection.exec_driver_sql(
                    _EXPLAIN[self.backend] + statement, values
                ).all()
            )
        self.assertIn('ix_programmings_started_at_id', steps)
        for sorting in ('TEMP B-TREE', 'filesort', 'Sort'):
            self.assertNotIn(sorting, steps)

    def test_what_has_changed(self) -> None:
        """Nor all of the hosts, if there are many."""
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.insert(schema.HOSTS),
                [
                    {
                        'hostname': f'other-{number}',
                        'node_uuid': uuidutils.generate_uuid(),
                        'service_host': f'other-{number}',
                        'report_digest': '',
                        'reported_at': schema.now(),
                    }
                    for number in range(2000)
                ],
            )
            for table in (schema.HOSTS, schema.ATTACH_HANDLES):
                connection.execute(
                    sa.update(table).values(
                        changed_at=schema.now() - datetime.timedelta(days=1)
                    )
                )
            # Without statistics a range may be of any size.
            for analyze in _ANALYZE[self.backend]:
                connection.exec_driver_sql(analyze)
        self.useFixture(
            fixtures.MonkeyPatch(
                'db.test_plans._LARGE', _LARGE.replace('arqs', 'arqs|hosts')
            )
        )
        # InnoDB still counts the former times of the rows, so the newest are
        # in a range of their own.
        newest = schema.now() + datetime.timedelta(days=1)
        with self.database.engine.begin() as connection:
            for table, key in (
                (schema.HOSTS, 'hostname'),
                (schema.ATTACH_HANDLES, 'uuid'),
            ):
                connection.execute(
                    sa.update(table)
                    .where(table.c[key] == self.rows(table)[0][key])
                    .values(changed_at=newest)
                )
        found: list[unit_changes.Changes] = []
        self.check(lambda: found.append(free_units.read(newest)))
        self.assertEqual(1, len(found[0].others))
        self.assertEqual(1, len(found[0].of_hosts))

    def check(self, call: Callable[[], Any]) -> None:
        """With the statistics that the database has, and with better ones."""
        statements = self.statements_with_values(call)
        with self.database.engine.connect() as connection:
            for analyze in ([], _ANALYZE[self.backend]):
                for statement in analyze:
                    connection.exec_driver_sql(statement)
                for statement, values in statements:
                    self.assertEqual(
                        [],
                        self.scans(connection, statement, values),
                        statement,
                    )

    def statements_with_values(
        self, call: Callable[[], Any]
    ) -> list[tuple[str, Any]]:
        """Those that look for something."""
        seen: list[tuple[str, Any]] = []

        def see(
            connection: Any,
            cursor: Any,
            statement: str,
            values: Any,
            *_arguments: Any,
        ) -> None:
            if statement.startswith(('SELECT', 'UPDATE', 'DELETE')):
                seen.append((statement, values))

        engine = self.database.engine
        sa.event.listen(engine, 'before_cursor_execute', see)
        try:
            call()
        finally:
            sa.event.remove(engine, 'before_cursor_execute', see)
        return seen

    def scans(
        self, connection: sa.Connection, statement: str, values: Any
    ) -> list[str]:
        """The steps of a plan that read all of something."""
        steps = (
            connection.exec_driver_sql(
                _EXPLAIN[self.backend] + statement, values
            )
            .mappings()
            .all()
        )
        if self.backend == 'mysql':
            return [
                str(step)
                for step in steps
                if step['type'] in ('ALL', 'index')
                and re.search(_LARGE, step['table'] or '')
            ]
        column, word = {
            'sqlite': ('detail', 'SCAN'),
            'postgresql': ('QUERY PLAN', 'Seq Scan on'),
        }[self.backend]
        return [
            step[column]
            for step in steps
            if re.search(f'{word} {_LARGE}', step[column])
        ]
