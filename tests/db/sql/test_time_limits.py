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
from concurrent import futures
import threading
import time
from typing import Any
from unittest import mock

from oslo_db import exception as db_exc
import sqlalchemy as sa
import testscenarios

from db import base
from db import relay
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.db.sql import time_limits
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios

SERVERS = [
    (name, attributes)
    for name, attributes in database.SCENARIOS
    if name != 'sqlite'
]

GROUP = 'nova_accel_database'


class LimitsTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        # As the engine is made by the fixture.
        for name, value in {
            'deadline_s': 3,
            'answer_timeout_s': 2,
            'lock_wait_s': 1,
        }.items():
            self.configure(name, value)
        super().setUp()

    def configure(self, name: str, value: Any) -> None:
        engine.CONF.set_override(name, value, GROUP)
        self.addCleanup(engine.CONF.clear_override, name, GROUP)

    def refused_within(self, seconds: float, call: Callable[[], Any]) -> str:
        begin = time.monotonic()
        error = self.assertRaises(exceptions.ServiceUnavailable, call)
        self.assertLess(time.monotonic() - begin, seconds)
        return str(error)


class TestLock(LimitsTestCase):
    """Another session has the lock, and does not let go of it."""

    scenarios = database.SCENARIOS

    def test_it_is_waited_for_until_the_deadline(self) -> None:
        self.make_profile()
        locked, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with engine.writer() as connection:
                connection.execute(
                    sa.update(schema.DEVICE_PROFILES).values(
                        description='locked'
                    )
                )
                locked.set()
                let_go.wait(60)

        with futures.ThreadPoolExecutor(1) as executor:
            held = executor.submit(hold)
            locked.wait(60)
            uuid = self.profile_uuid()
            try:
                self.assertIn(
                    'too busy',
                    self.refused_within(
                        6, lambda: device_profile.update(uuid, [base.QAT])
                    ),
                )
            finally:
                let_go.set()
            held.result()
        device_profile.update(uuid, [base.QAT])

    def profile_uuid(self) -> str:
        return str(device_profile.get('fpga')['uuid'])


class TestFrozen(LimitsTestCase):
    """A server that neither answers nor ends its connections."""

    scenarios = SERVERS

    #: The deadline, and twice an answer that does not come, as when a
    #: connection is tried first and then made anew; and what a busy machine
    #: takes.
    WITHIN_S = 3 + 2 * 2 + 3

    def setUp(self) -> None:
        super().setUp()
        self.make_profile()
        url = self.database.engine.url
        port = url.port or {'mysql': 3306, 'postgresql': 5432}[self.backend]
        self.server = self.useFixture(relay.Relay(str(url.host), port))
        self.configure(
            'connection',
            url.set(
                host='127.0.0.1',
                port=self.server.port,
            ).render_as_string(hide_password=False),
        )
        engine.forget()
        self.addCleanup(engine.forget)

    def assert_well_again(self) -> None:
        self.server.thaw()
        self.assertEqual(1, len(device_profile.get_all()))

    def test_reads(self) -> None:
        """nova-scheduler has no others."""
        device_profile.get_all()
        self.server.freeze()
        self.refused_within(self.WITHIN_S, device_profile.get_all)
        self.assert_well_again()

    def test_a_read_of_the_scheduler(self) -> None:
        """It has a shorter deadline, whatever the others have."""
        for name, value in {
            'deadline_s': 600,
            'answer_timeout_s': 600,
        }.items():
            self.configure(name, value)
        engine.forget()
        self.read_briefly()
        self.server.freeze()
        # Its deadline, and an answer that does not come, twice as long for
        # a connection of PostgreSQL.
        self.refused_within(3 + 2 + 3, self.read_briefly)
        self.assert_well_again()

    def test_the_first_connection_of_the_scheduler(self) -> None:
        self.server.freeze()
        self.refused_within(3 + 2 + 3, self.read_briefly)
        self.assert_well_again()

    @staticmethod
    def read_briefly() -> None:
        with time_limits.brief():
            device_profile.get_all()

    def test_one_that_was_idle(self) -> None:
        device_profile.get_all()
        time.sleep(1.1)
        self.server.freeze()
        self.refused_within(self.WITHIN_S, device_profile.get_all)
        self.assert_well_again()

    def test_the_first_connection(self) -> None:
        self.server.freeze()
        self.refused_within(self.WITHIN_S, device_profile.get_all)
        self.assert_well_again()

    def frozen_at(self, start: str) -> None:
        def listener(
            connection: Any, cursor: Any, statement: str, *_arguments: Any
        ) -> None:
            if statement.startswith(start):
                self.server.freeze()

        of_relay = engine.manager().writer.get_engine()
        sa.event.listen(of_relay, 'before_cursor_execute', listener)

    def test_within_a_transaction(self) -> None:
        self.frozen_at('INSERT INTO arqs')
        self.refused_within(
            self.WITHIN_S,
            lambda: client_arqs.create('fpga', base.PROJECT),
        )
        self.assert_well_again()
        self.assertEqual([], client_arqs.get_all())

    def test_at_commit(self) -> None:
        dialect = engine.manager().writer.get_engine().dialect
        commit = dialect.do_commit

        def do_commit(connection: Any) -> None:
            self.server.freeze()
            commit(connection)

        with mock.patch.object(dialect, 'do_commit', do_commit):
            self.refused_within(
                self.WITHIN_S,
                lambda: client_arqs.create('fpga', base.PROJECT),
            )
        self.assert_well_again()


class FaultsTestCase(base.DatabaseTestCase):
    def told(self, call: Callable[[], Any] = device_profile.get_all) -> str:
        return str(self.assertRaises(exceptions.ServiceUnavailable, call))

    def create(self) -> None:
        device_profile.create('fpga', [base.FPGA])

    def connect_to(self, **parts: str) -> None:
        url = self.database.engine.url.set(**parts)
        engine.manager().dispose_pool()
        engine.CONF.set_override(
            'connection', url.render_as_string(hide_password=False), GROUP
        )
        engine.manager.cache_clear()

    def set_up(self, statements: dict[str, str]) -> None:
        """Have new connections begin with a statement."""
        own = self.database.engine
        own.dispose()

        @sa.event.listens_for(own, 'connect')
        def begin(connection: Any, record: Any) -> None:
            connection.cursor().execute(statements[self.backend])
            connection.commit()


class TestFaults(FaultsTestCase):
    """Each is told by its kind, and what is to be done."""

    scenarios = database.SCENARIOS

    def test_no_table(self) -> None:
        schema.METADATA.drop_all(self.database.engine)
        self.addCleanup(schema.METADATA.create_all, self.database.engine)
        for call in (device_profile.get_all, self.create):
            self.assertIn('run "nova-accel-manage db sync"', self.told(call))

    def test_no_column(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.text('ALTER TABLE device_profiles DROP COLUMN description')
            )
        self.addCleanup(schema.METADATA.create_all, self.database.engine)
        self.addCleanup(schema.DEVICE_PROFILES.drop, self.database.engine)
        self.assertIn('run "nova-accel-manage db sync"', self.told())

    def test_no_database(self) -> None:
        self.connect_to(
            database='/nowhere/at-all.sqlite'
            if self.backend == 'sqlite'
            else 'nowhere'
        )
        self.assertIn('does not exist', self.told())

    def test_read_only(self) -> None:
        self.set_up(
            {
                'sqlite': 'PRAGMA query_only = 1',
                'mysql': 'SET SESSION TRANSACTION READ ONLY',
                'postgresql': 'SET SESSION default_transaction_read_only = on',
            }
        )
        self.assertEqual([], device_profile.get_all())
        self.assertIn('is read-only', self.told(self.create))

    def test_what_was_asked_is_no_fault_of_it(self) -> None:
        self.create()
        self.assertRaises(db_exc.DBDuplicateEntry, self.create_again)

    @engine.retried
    def create_again(self) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.insert(schema.DEVICE_PROFILES),
                [
                    {
                        'uuid': 'a',
                        'name': 'fpga',
                        'groups': [],
                        'created_at': schema.now(),
                    }
                ],
            )


class TestFaultsOfServers(FaultsTestCase):
    scenarios = SERVERS

    def test_no_user(self) -> None:
        self.connect_to(username='nobody-at-all', password='secret')
        told = self.told()
        self.assertIn('refuses the user', told)
        self.assertNotIn('nobody', told)
        self.assertNotIn('secret', self.log.output)


class TestFullFile(FaultsTestCase):
    """No test can fill a server's disk: see unit.db.sql.test_faults."""

    backend = 'sqlite'

    def test_full(self) -> None:
        self.set_up({'sqlite': 'PRAGMA max_page_count = 1'})
        many = [
            {
                'resources:FPGA': '1',
                f'trait:CUSTOM_{"A" * 200}{number}': 'required',
            }
            for number in range(1000)
        ]
        self.assertIn(
            'has no space left',
            self.told(lambda: device_profile.create('fpga', many)),
        )
