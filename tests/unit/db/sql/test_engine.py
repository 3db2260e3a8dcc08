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

import ast
import pathlib
import re
import socket
import threading
import time

import fixtures
from nova import monkey_patch
import testtools

from nova_accel import db
from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db.sql import engine
from nova_accel.testing import database

OPTION = '[nova_accel_database] connection'


class TestConfiguration(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())

    def configure(self, connection: str | None, **options: object) -> None:
        for name, value in {'connection': connection, **options}.items():
            engine.CONF.set_override(name, value, 'nova_accel_database')
            self.addCleanup(
                engine.CONF.clear_override, name, 'nova_accel_database'
            )
        engine.manager.cache_clear()
        self.addCleanup(engine.manager.cache_clear)

    def test_unusable_connection_names_the_option_only(self) -> None:
        for connection in (
            None,
            '',
            'user:secret@server',
            'frob://user:secret@server/nova_accel',
            'mysql+frob://user:secret@server/nova_accel',
            'oracle+oracledb://user:secret@server/nova_accel',
            'mssql://user:secret@server/nova_accel',
        ):
            self.configure(connection)
            for call in (engine.check_configured, device_profile.get_all):
                error = self.assertRaises(exceptions.ConfigurationError, call)
                self.assertIn(OPTION, str(error))
                self.assertNotIn('secret', str(error))
                self.assertIsNone(error.__cause__)

    def test_usable_connection(self) -> None:
        for connection in (
            'sqlite:////var/lib/nova/accelerators.sqlite',
            'mysql+pymysql://user:secret@server/nova_accel',
            'postgresql://user:secret@server/nova_accel',
        ):
            self.configure(connection)
            engine.check_configured()

    def test_server_that_does_not_answer(self) -> None:
        for driver in ('mysql+pymysql', 'postgresql+psycopg2'):
            self.configure(
                f'{driver}://user:secret@127.0.0.1:1/nova_accel', max_retries=0
            )
            error = self.assertRaises(
                exceptions.ServiceUnavailable, device_profile.get_all
            )
            self.assertEqual(
                'the database of accelerators does not answer', error.public
            )
            self.assertEqual(
                f'{error.public} ([nova_accel_database] connection names '
                '127.0.0.1:1)',
                str(error),
            )
            self.assertIn('127.0.0.1', self.log.output)
            self.assertNotIn('secret', self.log.output)

    def test_server_that_accepts_and_says_nothing(self) -> None:
        drivers = ['mysql+pymysql']
        # In Nova's eventlet mode psycopg2 stops the whole process, also the
        # thread that would end its wait.
        if not monkey_patch.is_patched():
            drivers.append('postgresql+psycopg2')
        for driver in drivers:
            with socket.create_server(('127.0.0.1', 0)) as silent:
                # So that no thread waits for ever if there is no limit.
                end = threading.Timer(15, silent.close)
                end.start()
                self.addCleanup(end.cancel)
                self.configure(
                    f'{driver}://user@127.0.0.1:{silent.getsockname()[1]}/x',
                    max_retries=0,
                    answer_timeout_s=2,
                    deadline_s=3,
                )
                begin = time.monotonic()
                self.assertRaises(
                    exceptions.ServiceUnavailable, device_profile.get_all
                )
                self.assertLess(time.monotonic() - begin, 10, driver)

    def test_new_configuration_after_the_cache_is_cleared(self) -> None:
        self.useFixture(database.Database())
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        with database.Database():
            self.assertEqual([], device_profile.get_all())


class TestRetried(testtools.TestCase):
    def test_whoever_has_a_transaction_begins_it_again(self) -> None:
        package = pathlib.Path(db.__file__).parent
        careless = [
            f'{path.stem}.{function.name}'
            for path in package.glob('*.py')
            for function in ast.walk(ast.parse(path.read_text()))
            if isinstance(function, ast.FunctionDef)
            and re.search(
                r'\bengine\.(reader|writer)\(', ast.unparse(function)
            )
            and 'engine.retried'
            not in map(ast.unparse, function.decorator_list)
        ]
        self.assertEqual([], careless)
