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

import sqlite3
from unittest import mock

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel.db.sql import pooling


class TestPooling(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = self.useFixture(fixtures.TempDir()).path
        self.engine = sa.create_engine(
            f'sqlite:///{directory}/file?plugin=nova_accel',
            poolclass=sa.QueuePool,
        )
        self.addCleanup(self.engine.dispose)
        self.now = 100.0
        self.useFixture(
            fixtures.MockPatch('time.monotonic', side_effect=lambda: self.now)
        )
        self.pings = self.useFixture(
            fixtures.MockPatchObject(self.engine.dialect, 'do_ping')
        ).mock

    def connection(self) -> object:
        """What the pool gives, and gets back at once."""
        with self.engine.connect() as connection:
            return connection.connection.dbapi_connection

    def test_only_an_idle_one_is_tried(self) -> None:
        first = self.connection()
        self.now += pooling._IDLE_S / 2
        self.assertIs(first, self.connection())
        self.assertEqual(0, self.pings.call_count)
        self.now += pooling._IDLE_S
        self.assertIs(first, self.connection())
        self.assertEqual([mock.call(first)], self.pings.call_args_list)

    def test_use_is_until_it_is_given_back(self) -> None:
        with self.engine.connect():
            self.now += 60
        self.connection()
        self.assertEqual(0, self.pings.call_count)

    def test_one_that_is_lost_is_replaced(self) -> None:
        lost = self.connection()
        self.pings.side_effect = sqlite3.OperationalError('gone')
        self.now += 2 * pooling._IDLE_S
        self.assertIsNot(lost, self.connection())

    def test_nothing_is_rolled_back_twice(self) -> None:
        self.connection()
        rollback = self.useFixture(
            fixtures.MockPatchObject(self.engine.dialect, 'do_rollback')
        ).mock
        with self.engine.begin() as connection:
            connection.execute(sa.text('SELECT 1'))
        self.assertEqual(0, rollback.call_count)
        with self.engine.connect() as connection:
            connection.execute(sa.text('SELECT 1'))
        self.assertEqual(1, rollback.call_count)
