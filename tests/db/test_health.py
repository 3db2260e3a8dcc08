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

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import health
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class TestCheck(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def test_it_answers(self) -> None:
        self.assertEqual(1, len(self.statements(health.check)))

    def test_without_a_version(self) -> None:
        with engine.writer() as connection:
            connection.execute(sa.delete(schema_version.TABLE))
        fault = self.assertRaises(exceptions.ServiceUnavailable, health.check)
        self.assertIn('db sync', fault.public)

    def test_without_tables(self) -> None:
        self.useFixture(database.Database(self.backend, tables=False))
        fault = self.assertRaises(exceptions.ServiceUnavailable, health.check)
        self.assertIn('db sync', fault.public)
