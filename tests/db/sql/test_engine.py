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
from collections.abc import Iterator
from concurrent import futures
import contextlib
import threading
from typing import Any
from unittest import mock

import fixtures
from oslo_db import exception as db_exc
import psycopg2
import pymysql
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import pooling
from nova_accel.db.sql import schema
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios

PROFILES = schema.DEVICE_PROFILES


class TestTransactions(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def insert(self, connection: sa.Connection, name: str = 'a') -> None:
        connection.execute(
            sa.insert(PROFILES).values(
                uuid=name, name=name, groups=[], created_at=schema.now()
            )
        )

    def test_writer_undoes_all_at_an_exception(self) -> None:
        def fail() -> None:
            with engine.writer() as connection:
                self.insert(connection)
                raise exceptions.Conflict('no')

        self.assertRaises(exceptions.Conflict, fail)
        self.assertEqual([], device_profile.get_all())

    def test_reader_keeps_nothing(self) -> None:
        with engine.reader() as connection:
            self.insert(connection)
        self.assertEqual([], device_profile.get_all())

    def test_reader_does_not_wait_for_a_writer(self) -> None:
        with engine.writer() as connection:
            self.insert(connection)
            self.assertEqual([], device_profile.get_all())

    def test_writers_that_read_first_do_not_lose(self) -> None:
        def change() -> None:
            with engine.writer() as connection:
                connection.execute(sa.select(PROFILES)).all()
                connection.execute(sa.update(PROFILES).values(description='b'))

        with engine.writer() as connection:
            self.insert(connection)
        self.assertEqual(
            [None] * base.RACERS, base.race([change] * base.RACERS)
        )

    def test_foreign_keys_are_kept(self) -> None:
        def orphan() -> None:
            with engine.writer() as connection:
                connection.execute(
                    sa.insert(schema.DEPLOYABLES).values(
                        uuid='a',
                        device_uuid='b',
                        name='a',
                        rp_uuid='a',
                        resource_class='FPGA',
                        traits=[],
                    )
                )

        self.assertRaises(db_exc.DBReferenceError, orphan)

    def test_times_are_whole_seconds_in_utc(self) -> None:
        before = schema.now().replace(microsecond=0)
        device_profile.create('fpga', [base.FPGA])
        found = device_profile.get('fpga')['created_at']
        self.assertTrue(before <= found <= schema.now())
        self.assertEqual(0, found.microsecond)


class TestServers(base.DatabaseTestCase):
    # SQLite has one kind of isolation, and takes text of any length.
    scenarios = [
        (name, attributes)
        for name, attributes in database.SCENARIOS
        if name != 'sqlite'
    ]

    def test_isolation(self) -> None:
        with engine.writer() as connection:
            self.assertEqual(
                'READ COMMITTED', connection.get_isolation_level()
            )

    def test_too_long(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidRequest,
            device_profile.create,
            'a' * 256,
            [base.FPGA],
        )
        self.assertNotIn('INSERT', str(error))


class TestRetries(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        # As the engine is made by the fixture.
        engine.CONF.set_override('lock_wait_s', 1, 'nova_accel_database')
        self.addCleanup(
            engine.CONF.clear_override, 'lock_wait_s', 'nova_accel_database'
        )
        super().setUp()
        device_profile.create('fpga', [base.FPGA])
        self.attempts = 0

    def rename(self) -> None:
        self.attempts += 1
        with engine.writer() as connection:
            connection.execute(sa.update(PROFILES).values(name='renamed'))

    @contextlib.contextmanager
    def locked(self) -> Iterator[threading.Event]:
        """Another transaction has the row, until the event is set."""
        locked, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with engine.writer() as connection:
                connection.execute(
                    sa.update(PROFILES).values(description='locked')
                )
                locked.set()
                let_go.wait(60)

        with futures.ThreadPoolExecutor(1) as executor:
            held = executor.submit(hold)
            locked.wait(60)
            try:
                yield let_go
            finally:
                let_go.set()
            held.result()

    def test_lock_that_is_never_let_go(self) -> None:
        with mock.patch.object(engine, 'RETRIES', 1):
            rename = engine.retried(self.rename)
        with self.locked():
            self.assertRaises(exceptions.ServiceUnavailable, rename)
        self.assertEqual(2, self.attempts)
        [found] = device_profile.get_all()
        self.assertEqual(
            ('fpga', 'locked'), (found['name'], found['description'])
        )

    def test_lock_that_is_let_go_later(self) -> None:
        with self.locked() as let_go:

            @engine.retried
            def rename() -> None:
                if self.attempts == 1:
                    let_go.set()
                self.rename()

            rename()
        self.assertEqual(2, self.attempts)
        [found] = device_profile.get_all()
        self.assertEqual(
            ('renamed', 'locked'), (found['name'], found['description'])
        )

    def test_fault_of_the_function_when_it_loses_each_time(self) -> None:
        @engine.retried
        def lose() -> None:
            self.attempts += 1
            raise db_exc.RetryRequest(exceptions.AcceleratorsBusy('lost'))

        with mock.patch('time.sleep', autospec=True) as sleep:
            self.assertRaises(exceptions.AcceleratorsBusy, lose)
        self.assertEqual(engine.RETRIES + 1, self.attempts)
        for call in sleep.call_args_list:
            self.assertLessEqual(call.args[0], 1)

    def test_other_faults_are_not_retried(self) -> None:
        @engine.retried
        def fail() -> None:
            self.attempts += 1
            with engine.writer() as connection:
                connection.execute(
                    sa.insert(PROFILES),
                    [
                        {
                            'uuid': 'a',
                            'name': 'fpga',
                            'groups': [],
                            'created_at': schema.now(),
                        }
                    ],
                )

        self.assertRaises(db_exc.DBDuplicateEntry, fail)
        self.assertEqual(1, self.attempts)


#: Takes the engine's dialect and the driver's connection.
_Commit = Callable[[Any, Any], None]

#: In the words of Galera and of the clients; all of it has been undone.
_REFUSALS = [
    (
        'certification',
        {
            'code': 1213,
            'text': (
                'Deadlock found when trying to get lock; try restarting '
                'transaction'
            ),
        },
    ),
    ('wsrep', {'code': 1213, 'text': 'Deadlock: wsrep aborted transaction'}),
    (
        'timeout',
        {
            'code': 1205,
            'text': ('Lock wait timeout exceeded; try restarting transaction'),
        },
    ),
]


class CommitTestCase(base.DatabaseTestCase):
    """COMMITs that the database, or the way to it, does not let through."""

    def setUp(self) -> None:
        super().setUp()
        self.host.report()
        self.make_profile()
        self.useFixture(fixtures.MockPatch('time.sleep'))
        self.commits = 0

    @contextlib.contextmanager
    def commits_that_fail(
        self, fail: _Commit, times: int = 1
    ) -> Iterator[None]:
        dialect = self.database.engine.dialect
        commit = dialect.do_commit

        def do_commit(connection: Any) -> None:
            self.commits += 1
            if self.commits <= times:
                fail(dialect, connection)
            commit(connection)

        with mock.patch.object(dialect, 'do_commit', do_commit):
            yield


class TestGalera(CommitTestCase):
    """Another node of the cluster was first, which COMMIT finds out."""

    scenarios = testscenarios.multiply_scenarios(
        [
            scenario
            for scenario in database.SCENARIOS
            if scenario[0] == 'mysql'
        ],
        _REFUSALS,
    )
    code: int
    text: str

    def refuse(self, dialect: Any, connection: Any) -> None:
        dialect.do_rollback(connection)
        raise pymysql.err.OperationalError(self.code, self.text)

    def test_bind(self) -> None:
        [uuid] = self.make_arqs(1)
        with self.commits_that_fail(self.refuse):
            [arq] = client_arqs.bind({uuid: self.place()})
        self.assertEqual((2, 'Bound'), (self.commits, arq['state']))
        self.assertEqual([uuid], list(self.taken().values()))

    def test_acquire_and_release(self) -> None:
        request = self.request()
        with self.commits_that_fail(self.refuse):
            [arq] = host_arqs.acquire(request)
        self.assertEqual(
            {arq['attach_handle_uuid']: arq['uuid']}, self.taken()
        )
        self.commits = 0
        with self.commits_that_fail(self.refuse):
            host_arqs.release(*request.key, 1)
        self.assertEqual(2, self.commits)
        self.assertEqual({}, self.taken())
        self.assertEqual([], self.rows(schema.ARQS))

    def test_refused_every_time(self) -> None:
        before = self.everything()
        with self.commits_that_fail(self.refuse, 99):
            self.assertRaises(
                exceptions.ServiceUnavailable,
                host_arqs.acquire,
                self.request(),
            )
        self.assertEqual(engine.RETRIES + 1, self.commits)
        self.assertEqual(before, self.everything())


class TestLostConnection(CommitTestCase):
    # SQLite has no connection to lose.
    scenarios = [
        (name, attributes)
        for name, attributes in database.SCENARIOS
        if name != 'sqlite'
    ]

    def end_connection(self, connection: sa.Connection) -> None:
        """As a server does that is shut down."""
        of_driver: Any = connection.connection.dbapi_connection
        statement = (
            f'KILL {of_driver.thread_id()}'
            if self.backend == 'mysql'
            else 'SELECT pg_terminate_backend('
            f'{of_driver.get_backend_pid()}, 10000)'
        )
        # One of the pool's would be the next that is used.
        own = sa.create_engine(self.database.engine.url, poolclass=sa.NullPool)
        with own.connect() as other:
            other.execute(sa.text(statement))

    @contextlib.contextmanager
    def lost_before(self, start: str, times: int = 1) -> Iterator[list[str]]:
        """The first statements that start so find the connection ended."""
        lost: list[str] = []

        def listener(
            connection: sa.Connection,
            cursor: Any,
            statement: str,
            *_arguments: Any,
        ) -> None:
            if statement.startswith(start) and len(lost) < times:
                lost.append(statement)
                self.end_connection(connection)

        pool = self.database.engine
        sa.event.listen(pool, 'before_cursor_execute', listener)
        try:
            yield lost
        finally:
            sa.event.remove(pool, 'before_cursor_execute', listener)

    def lose(self) -> None:
        """The connection that the next transaction would get."""
        with self.database.engine.connect() as first:
            self.end_connection(first)

    def test_between_two_transactions(self) -> None:
        self.lose()
        self.assertEqual(1, len(self.make_arqs(1)))

    def test_between_two_reads(self) -> None:
        made = self.make_arqs(1)
        self.lose()
        self.assertEqual(made, [arq['uuid'] for arq in client_arqs.get_all()])

    def test_while_it_was_idle(self) -> None:
        self.lose()
        with mock.patch.object(pooling, '_IDLE_S', 0):
            self.assertEqual(1, len(device_profile.get_all()))

    def test_within_one(self) -> None:
        [uuid] = self.make_arqs(1)
        with self.lost_before('UPDATE attach_handles') as lost:
            [arq] = client_arqs.bind({uuid: self.place()})
        self.assertEqual((1, 'Bound'), (len(lost), arq['state']))
        self.assertEqual([uuid], list(self.taken().values()))

    def test_within_each(self) -> None:
        before = self.everything()
        with self.lost_before('UPDATE attach_handles', 99) as lost:
            self.assertRaises(
                exceptions.ServiceUnavailable,
                host_arqs.acquire,
                self.request(),
            )
        self.assertEqual(engine.RETRIES + 1, len(lost))
        self.assertEqual(before, self.everything())

    def test_at_commit(self) -> None:
        """No one knows what became of it; here it was done."""

        def fail(dialect: Any, connection: Any) -> None:
            connection.commit()
            connection.close()
            raise (
                pymysql.err.OperationalError(
                    2013, 'Lost connection to MySQL server during query'
                )
                if self.backend == 'mysql'
                else psycopg2.OperationalError(
                    'server closed the connection unexpectedly'
                )
            )

        request = self.request()
        with self.commits_that_fail(fail):
            self.assertRaises(
                exceptions.ServiceUnavailable, host_arqs.acquire, request
            )
        self.assertEqual(1, self.commits)
        # A host asks again, and gets what it had then.
        [arq] = host_arqs.acquire(request)
        self.assertEqual(
            {arq['attach_handle_uuid']: arq['uuid']}, self.taken()
        )
