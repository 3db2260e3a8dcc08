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

from collections.abc import Callable
import functools
import itertools
import os
import signal
from typing import Any

from alembic import autogenerate
from alembic import command
from alembic.runtime import migration as alembic_migration
import fixtures
import pymysql.connections
import sqlalchemy as sa
import testscenarios
import testtools

from db import base
from db import next_release
from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db.migrations import migration
from nova_accel.db.migrations import schema_version
from nova_accel.db.migrations import sync_lock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import database

_CHANGES = ('CREATE', 'ALTER', 'DROP')

load_tests = testscenarios.load_tests_apply_scenarios


def _die_before(number: int, words: tuple[str, ...]) -> None:
    """From now on, kill this process before a statement."""
    left = itertools.count(-number)

    def count(
        connection: Any, cursor: Any, statement: str, *_arguments: Any
    ) -> None:
        if statement.lstrip().startswith(words) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.Engine, 'before_cursor_execute', count)


def _tell_and_die(descriptor: int) -> None:
    """As :func:`_die_before`, and tell of each change before that."""

    def tell(
        connection: Any, cursor: Any, statement: str, *_arguments: Any
    ) -> None:
        if statement.lstrip().startswith(_CHANGES):
            os.write(descriptor, b'.')

    sa.event.listen(sa.Engine, 'before_cursor_execute', tell)
    _die_before(9, _CHANGES)


def _die_when_sent() -> None:
    """From now on, kill this process when MySQL has got a change to make."""
    connection = pymysql.connections.Connection
    send = connection._execute_command

    def send_and_die(self: Any, command: int, sql: str | bytes) -> None:
        send(self, command, sql)
        text = sql.decode() if isinstance(sql, bytes) else sql
        if text.lstrip().startswith(_CHANGES):
            os.kill(os.getpid(), signal.SIGKILL)

    connection._execute_command = send_and_die


class TestMigration(testtools.TestCase):
    scenarios = database.SCENARIOS
    backend: str

    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(
            database.Database(self.backend, tables=False)
        )

    def test_steps_lead_to_the_schema(self) -> None:
        migration.sync()
        self.assert_schema()

    def assert_schema(self) -> None:
        self.assertEqual([], self.differences())

    def differences(self) -> list[Any]:
        """Where the database and the tables of this release differ."""
        with self.database.engine.connect() as connection:
            context = alembic_migration.MigrationContext.configure(
                connection,
                opts={'compare_type': True, 'compare_server_default': True},
            )
            return autogenerate.compare_metadata(context, schema.METADATA)

    def begin(self, prepare: Callable[[], None] = lambda: None) -> int:
        """Start a sync in another process, and give its number.

        :param prepare: is called there first
        """
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                prepare()
                migration.sync()
                status = 0
            finally:
                os._exit(status)
        return pid

    def is_killed(self, pid: int) -> bool:
        """Whether it got SIGKILL, once it has ended; if not, it was well."""
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            return True
        self.assertEqual(0, status)
        return False

    def killed_at(self, number: int, words: tuple[str, ...] = ('',)) -> bool:
        """Whether a sync of another process got so far, and no farther.

        :param number: of the statement before which it gets SIGKILL
        :param words: statements that begin so are counted
        """
        return self.is_killed(
            self.begin(functools.partial(_die_before, number, words))
        )

    def test_it_is_killed_at_each_statement(self) -> None:
        """MySQL commits each that changes the schema, the others none."""
        killed = 0
        if self.backend == 'mysql':
            # Each one makes one change, and begins where the last one ended.
            while self.killed_at(1, _CHANGES):
                killed += 1
        else:
            while self.killed_at(20 * killed):
                self.assertIsNone(migration.version())
                killed += 1
        migration.sync()
        self.assert_schema()
        self.assertGreater(killed, 20 if self.backend == 'mysql' else 2)

    def test_it_is_killed_before_a_version_is_noted(self) -> None:
        """All of a step is done then, and its version is not."""
        if self.backend != 'mysql':
            self.skipTest('another database undoes the step')
        self.useFixture(next_release.NextRelease())
        # The changes of the next step commit a version.
        self.assertTrue(self.killed_at(1, ('INSERT', 'UPDATE')))
        self.assertFalse(self.killed_at(1, ('INSERT', 'UPDATE')))
        self.assert_next()

    def test_it_is_killed_while_the_server_is_at_work(self) -> None:
        """The server goes on with a change whose client is gone."""
        if self.backend != 'mysql':
            self.skipTest('another database undoes it')
        killed = 0
        while self.is_killed(self.begin(_die_when_sent)):
            killed += 1
            self.assertLess(killed, 200)
        self.assertGreater(killed, 20)
        migration.sync()
        self.assert_schema()

    def test_one_of_three_controllers_is_killed(self) -> None:
        begun, tell = os.pipe()
        self.addCleanup(os.close, begun)
        self.addCleanup(os.close, tell)
        first = self.begin(functools.partial(_tell_and_die, tell))
        # The others come when it has the lock.
        os.read(begun, 1)
        others = [self.begin() for _other in range(2)]
        self.assertTrue(self.is_killed(first))
        self.assertEqual([False, False], list(map(self.is_killed, others)))
        self.assert_schema()

    def test_the_next_release_brings_it_up_with_its_data(self) -> None:
        migration.sync()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        self.useFixture(next_release.NextRelease())
        while self.killed_at(1, _CHANGES) and self.backend == 'mysql':
            self.assertEqual(1, len(device_profile.get_all()))
        migration.sync()
        self.assert_next()
        self.assertEqual(1, len(device_profile.get_all()))

    def assert_next(self) -> None:
        self.assertEqual(next_release.VERSION, migration.version())
        self.assertEqual(
            ['remove_index', 'remove_column'],
            [what for what, *_of_what in self.differences()],
        )

    def test_steps_that_are_done_already(self) -> None:
        """As on MySQL, where a step that is cut short leaves its changes."""
        self.useFixture(next_release.NextRelease())
        migration.sync()
        for version in (schema_version.NEWEST, 'base'):
            with sync_lock.alone(engine.url()) as connection:
                command.stamp(migration.config(connection), version)
            migration.sync()
            self.assert_next()

    def test_several_at_once(self) -> None:
        self.assertEqual([None] * 3, base.race([migration.sync] * 3))
        self.assert_schema()

    def test_another_that_does_not_end(self) -> None:
        with (
            sync_lock.alone(engine.url()),
            fixtures.MonkeyPatch(
                'nova_accel.db.migrations.sync_lock.WAIT_S', 1
            ),
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
                'nova_accel.db.migrations.migration.command.upgrade',
                side_effect=fault,
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

    def test_unknown_version(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidRequest, migration.sync, 'frob'
        )
        self.assertIn('frob', str(error))
        self.assertIsNone(migration.version())
