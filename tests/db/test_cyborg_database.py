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

"""Cyborg's own tables, read and changed on the servers that it can use."""

from typing import Any

import fixtures
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.cmd.cyborg import cyborg_database
from nova_accel.cmd.cyborg import steps
from nova_accel.db.sql import schema
from nova_accel.model import nova_server
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import mapping
from nova_accel.model.cyborg import snapshot
from rig.cyborg import programs
from rig.cyborg import tables

load_tests = testscenarios.load_tests_apply_scenarios

_SERVERS = [
    (backend, {'backend': backend}) for backend in ('mysql', 'postgresql')
]

_ARQS = 'extended_accelerator_requests'

#: How often there is what Cyborg has made: 10,000 ARQs in a full run.
_TIMES = 125 if programs.is_there() else 13


class CyborgTestCase(base.DatabaseTestCase):
    """Cyborg's database and ours, on the same server."""

    scenarios = _SERVERS

    def setUp(self) -> None:
        super().setUp()
        self.tables = self.useFixture(tables.Tables(self.backend))
        self.source = cyborg_database.CyborgDatabase(self.tables.url)

    def execute(self, statement: str) -> None:
        with self.tables.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    def scalar(self, statement: str) -> Any:
        with self.tables.engine.connect() as connection:
            return connection.scalar(sa.text(statement))


class TestRead(CyborgTestCase):
    def test_all_rows(self) -> None:
        found = self.source.read()
        self.assertEqual(
            (3, 24, 24, 52, 80, 80),
            (
                len(found.profiles),
                len(found.devices),
                len(found.controlpath_ids),
                len(found.deployables),
                len(found.handles),
                len(found.arqs),
            ),
        )
        self.assertEqual({'Bound'}, {arq.state for arq in found.arqs})
        self.assertEqual(
            {'OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8', 'CUSTOM_NVIDIA_1EB8_T4_2B'},
            {
                each.value
                for each in found.attributes
                if each.key.startswith('trait')
            },
        )
        # Cyborg keeps them in UTC.
        self.assertIsNotNone(found.arqs[0].created_at.tzinfo)

    def test_all_rows_are_of_one_moment(self) -> None:
        deleted = False

        def delete_all(*arguments: Any) -> None:
            nonlocal deleted
            if not deleted and 'FROM device_profiles' in arguments[2]:
                deleted = True
                self.execute(f'DELETE FROM {_ARQS}')

        event = (sa.Engine, 'after_cursor_execute', delete_all)
        sa.event.listen(*event)
        self.addCleanup(sa.event.remove, *event)
        self.assertEqual(80, len(self.source.read().arqs))
        self.assertTrue(deleted)
        self.assertEqual(0, len(self.source.read().arqs))

    def test_release_16(self) -> None:
        """It has no device_state."""
        self.execute('ALTER TABLE devices DROP COLUMN device_state')
        self.execute("UPDATE alembic_version SET version_num = '6c77bd6afea5'")
        self.assertEqual(80, len(self.source.read().arqs))

    def test_another_release(self) -> None:
        self.execute("UPDATE alembic_version SET version_num = 'abc'")
        fault = self.assertRaises(
            exceptions.ConfigurationError, self.source.read
        )
        self.assertIn('abc', str(fault))

    def test_another_database(self) -> None:
        self.execute('DROP TABLE alembic_version')
        fault = self.assertRaises(
            exceptions.ConfigurationError, self.source.read
        )
        self.assertIn('no table alembic_version', str(fault))

    def test_what_is_no_url(self) -> None:
        for url in (
            'a secret',
            'sqlite:///a secret',
            'mysql+no_such_driver://root:a secret@host/cyborg',
        ):
            fault = self.assertRaises(
                exceptions.ConfigurationError,
                cyborg_database.CyborgDatabase,
                url,
            )
            self.assertNotIn('a secret', str(fault))

    def test_no_server(self) -> None:
        url = sa.make_url(self.tables.url).set(port=1, password='a secret')
        source = cyborg_database.CyborgDatabase(
            url.render_as_string(hide_password=False)
        )
        fault = self.assertRaises(exceptions.ServiceUnavailable, source.read)
        self.assertNotIn('a secret', str(fault))

    def test_the_recorded_tables_are_cyborgs_own(self) -> None:
        if not programs.is_there():
            self.skipTest('there is no environment with Cyborg')
        recorded = self.useFixture(tables.Recorded(self.backend))
        self.assertEqual(self.tables.columns(), recorded.columns())
        self.assertEqual(
            {name: len(rows) for name, rows in self.tables.rows().items()},
            {name: len(rows) for name, rows in recorded.rows().items()},
        )


class TestDeleteArqs(CyborgTestCase):
    def test_their_handles_are_free(self) -> None:
        first, second, *_others = self.source.read().arqs
        self.assertEqual(
            2, self.source.delete_arqs([first.uuid, second.uuid, 'unknown'])
        )
        self.assertEqual(78, len(self.source.read().arqs))
        free = 'SELECT COUNT(*) FROM attach_handles WHERE NOT in_use'
        self.assertEqual(2, self.scalar(free))
        before = self.tables.rows()
        self.assertEqual(0, self.source.delete_arqs([first.uuid]))
        self.assertEqual(before, self.tables.rows())


class TestMove(CyborgTestCase):
    """ARQs that Cyborg's own code has made and bound."""

    def setUp(self) -> None:
        super().setUp()
        self.servers: dict[str, nova_server.Server] = {}
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.cells.servers', lambda uuids: self.servers
            )
        )

    def nova(self, found: snapshot.Snapshot) -> mapping.NovaState:
        self.servers.update(
            dict.fromkeys(
                mapping.instances(found), nova_server.Server('host', 'active')
            )
        )
        return mapping.NovaState(
            [
                hosts.CyborgNode(name[:36], f'{name}.example', name)
                for name in {device.hostname for device in found.devices}
            ],
            self.servers,
        )

    def import_all(self) -> mapping.Import:
        found = self.source.read()
        imported = mapping.read(found, self.nova(found))
        for result in steps.import_all(imported):
            self.assertTrue(result.is_done, result)
        return imported

    def test_many_arqs_there_and_back(self) -> None:
        self.tables.multiply(_TIMES)
        theirs, ours = self.tables.rows(), self.everything()
        imported = self.import_all()
        self.assertEqual(80 * _TIMES, len(self.rows(schema.ARQS)))
        self.assertEqual(4 * _TIMES, len(self.rows(schema.HOSTS)))
        self.assertEqual(self.held_in_cyborg(), self.taken())
        before = self.everything()
        self.import_all()
        self.assertEqual(before, self.everything())
        found = self.source.read()
        origins = hosts.origins(found, self.nova(found).nodes)
        self.assertEqual(4 * _TIMES, len(origins))
        for origin in origins.values():
            for result in steps.undo(origin, self.source):
                self.assertTrue(result.is_done, result)
        list(steps.remove_profiles(imported.profiles))
        left = self.everything()
        # A bill may have been made of it.
        periods = left.pop('held_periods')
        self.assertEqual(80 * _TIMES, len(periods))
        self.assertNotIn(None, [each['ended_at'] for each in periods])
        self.assertEqual(ours, {**left, 'held_periods': []})
        self.assertEqual(theirs, self.tables.rows())

    def held_in_cyborg(self) -> dict[str, str]:
        """Attach handle -> ARQ that has it."""
        found = self.source.read()
        handles = {handle.id: handle.uuid for handle in found.handles}
        return {
            handles[arq.attach_handle_id or 0]: arq.uuid for arq in found.arqs
        }

    def test_cyborg_is_told_of_servers_that_were_deleted(self) -> None:
        self.import_all()
        found = self.source.read()
        origin = hosts.origins(found, self.nova(found).nodes)[
            'compute-1.example'
        ]
        gone = sorted(origin.claims)[:3]
        with self.database.engine.begin() as connection:
            for table, column in (
                (schema.ATTACH_HANDLES, schema.ATTACH_HANDLES.c.arq_uuid),
                (schema.ARQS, schema.ARQS.c.uuid),
            ):
                statement = (
                    sa.update(table).values(arq_uuid=None)
                    if table is schema.ATTACH_HANDLES
                    else sa.delete(table)
                )
                connection.execute(statement.where(column.in_(gone)))
        for _time in range(2):
            list(steps.undo(origin, self.source))
            self.assertEqual(77, self.scalar(f'SELECT COUNT(*) FROM {_ARQS}'))
            self.assertEqual(
                3,
                self.scalar(
                    'SELECT COUNT(*) FROM attach_handles WHERE NOT in_use'
                ),
            )
        self.assertEqual(3, len(self.rows(schema.HOSTS)))

    def test_a_busy_server_is_in_the_way(self) -> None:
        self.import_all()
        before, theirs = self.everything(), self.tables.rows()
        found = self.source.read()
        origin = hosts.origins(found, self.nova(found).nodes)[
            'compute-1.example'
        ]
        uuid = next(iter(origin.claims.values())).instance_uuid
        self.servers[uuid] = nova_server.Server('host', 'active', 'deleting')
        fault = self.assertRaises(
            exceptions.Conflict,
            list,
            steps.undo(origin, self.source),
        )
        self.assertIn(uuid, str(fault))
        self.assertEqual(before, self.everything())
        self.assertEqual(theirs, self.tables.rows())
