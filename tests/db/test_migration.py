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

import datetime
import itertools
import os
import signal
from typing import Any

from alembic import autogenerate
from alembic import command
from alembic import script
from alembic.runtime import migration as alembic_migration
import fixtures
import sqlalchemy as sa
import testscenarios
import testtools

from db import base
from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db import engine
from nova_accel.db import free_units
from nova_accel.db import migration
from nova_accel.db import schema
from nova_accel.db import sync_lock
from nova_accel.testing import database

FIRST = '4f1c0a7d9e52'

#: A host with a device, as the first release writes them.
DATA_OF_FIRST = (
    'INSERT INTO hosts (hostname, node_uuid, service_host, report_digest,'
    " reported_at) VALUES ('compute-1', 'n', 'compute-1', 'd', :now)",
    'INSERT INTO devices (uuid, hostname, name, type, vendor_id, vendor,'
    ' product_id, product, address, driver, status, created_at) VALUES'
    " ('device', 'compute-1', 'pci', 'FPGA', '8086', 'Intel', '09c4', 'PAC',"
    " '0000:0c:00.0', 'fake', 'enabled', :now)",
    'INSERT INTO deployables (uuid, device_uuid, name, rp_uuid,'
    " resource_class, traits) VALUES ('deployable', 'device', 'region0',"
    """ 'rp', 'FPGA', '["A"]')""",
    'INSERT INTO attach_handles (uuid, deployable_uuid, type, info, present)'
    """ VALUES ('handle', 'deployable', 'PCI', '{"bus": "0c"}', :yes)""",
)

load_tests = testscenarios.load_tests_apply_scenarios


class TestMigration(testtools.TestCase):
    scenarios = database.SCENARIOS
    backend: str

    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(
            database.Database(self.backend, tables=False)
        )

    def write_as_the_first_release(self) -> None:
        with self.database.engine.begin() as connection:
            for statement in DATA_OF_FIRST:
                # PostgreSQL has no number for a truth value.
                connection.execute(
                    sa.text(statement),
                    {'now': datetime.datetime(2026, 11, 21), 'yes': True},
                )

    def test_steps_lead_to_the_schema(self) -> None:
        migration.sync()
        self.assert_schema()

    def assert_schema(self) -> None:
        with self.database.engine.connect() as connection:
            context = alembic_migration.MigrationContext.configure(
                connection,
                opts={'compare_type': True, 'compare_server_default': True},
            )
            self.assertEqual(
                [], autogenerate.compare_metadata(context, schema.METADATA)
            )

    def killed_at(self, number: int, words: tuple[str, ...] = ('',)) -> bool:
        """Whether a sync of another process got so far, and no farther.

        :param number: of the statement before which it gets SIGKILL
        :param words: statements that begin so are counted
        """
        pid = os.fork()
        if pid == 0:
            left = itertools.count(-number)

            def count(
                connection: Any, cursor: Any, statement: str, *_arguments: Any
            ) -> None:
                if statement.lstrip().startswith(words) and next(left) == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            sa.event.listen(sa.Engine, 'before_cursor_execute', count)
            try:
                migration.sync()
            finally:
                os._exit(0)
        return os.WIFSIGNALED(os.waitpid(pid, 0)[1])

    def test_it_is_killed_at_each_statement(self) -> None:
        """MySQL commits each that changes the schema, the others none."""
        killed = 0
        if self.backend == 'mysql':
            # Each one makes one change, and begins where the last one ended.
            while self.killed_at(1, ('CREATE', 'ALTER', 'DROP')):
                killed += 1
        else:
            while self.killed_at(20 * killed):
                self.assertIsNone(migration.version())
                killed += 1
        migration.sync()
        self.assert_schema()
        self.assertGreater(killed, 20 if self.backend == 'mysql' else 2)

    def test_steps_that_are_done_already(self) -> None:
        """As on MySQL, where a step that is cut short leaves its changes."""
        migration.sync()
        with sync_lock.alone(engine.url()) as connection:
            steps = script.ScriptDirectory.from_config(
                migration.config(connection)
            )
            versions = [
                step.down_revision or 'base' for step in steps.walk_revisions()
            ]
        for version in versions:
            with sync_lock.alone(engine.url()) as connection:
                command.stamp(migration.config(connection), version)
            migration.sync()
            self.assert_schema()

    def test_several_at_once(self) -> None:
        self.assertEqual([None] * 3, base.race([migration.sync] * 3))
        self.assert_schema()

    def test_another_that_does_not_end(self) -> None:
        with (
            sync_lock.alone(engine.url()),
            fixtures.MonkeyPatch('nova_accel.db.sync_lock.WAIT_S', 1),
        ):
            error = self.assertRaises(
                exceptions.ServiceUnavailable, migration.sync
            )
        self.assertIn('another "nova-accel-manage db sync"', str(error))
        migration.sync()

    def test_a_step_that_is_refused(self) -> None:
        """It says what is wrong, and not by which statement."""
        for fault, told in (
            (
                sa.exc.ProgrammingError(
                    'CREATE TABLE', None, Exception('no room')
                ),
                'no room',
            ),
            (
                sa.exc.OperationalError(
                    'CREATE TABLE', None, Exception('went away')
                ),
                'does not answer',
            ),
        ):
            with fixtures.MockPatch(
                'nova_accel.db.migration.command.upgrade', side_effect=fault
            ) as upgrade:
                error = self.assertRaises(
                    exceptions.ServiceUnavailable, migration.sync
                )
            upgrade.mock.assert_called_once()
            self.assertIn(told, str(error))
            self.assertNotIn('CREATE', str(error))

    def test_a_second_sync_changes_nothing(self) -> None:
        migration.sync()
        version = migration.version()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        migration.sync()
        self.assertEqual(version, migration.version())
        self.assertEqual(1, len(device_profile.get_all()))

    def test_version(self) -> None:
        self.assertIsNone(migration.version())
        migration.sync()
        version = migration.version()
        assert version is not None
        migration.sync(version)
        self.assertEqual(version, migration.version())

    def test_the_first_schema_is_brought_up_with_its_data(self) -> None:
        migration.sync(FIRST)
        self.write_as_the_first_release()
        migration.sync()
        with self.database.engine.connect() as connection:
            found = {
                table.name: dict(
                    connection.execute(sa.select(table)).mappings().one()
                )
                for table in (
                    schema.HOSTS,
                    schema.DEVICES,
                    schema.DEPLOYABLES,
                    schema.ATTACH_HANDLES,
                )
            }
        for name, facts in {
            'hosts': {
                'hostname': 'compute-1',
                'orders': 0,
                'changed_at': None,
            },
            'devices': {'product': 'PAC', 'fault': None, 'attributes': None},
            'deployables': {'traits': ['A'], 'is_cleaned': False},
            'attach_handles': {
                'info': {'bus': '0c'},
                'present': True,
                'unclean_since': None,
                'unclean_reason': None,
                'changed_at': None,
            },
        }.items():
            self.assertEqual(facts, {key: found[name][key] for key in facts})
        self.assert_free()

    def assert_free(self) -> None:
        [found] = free_units.read(None).of_hosts['compute-1']
        self.assertEqual((1, 1), (found.total, found.free))

    def test_the_release_before_works_on_the_new_schema(self) -> None:
        migration.sync()
        self.write_as_the_first_release()
        self.assert_free()

    def test_unknown_version(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidRequest, migration.sync, 'frob'
        )
        self.assertIn('frob', str(error))
        self.assertIsNone(migration.version())
