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

from alembic import autogenerate
from alembic.runtime import migration as alembic_migration
import testscenarios
import testtools

from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db import migration
from nova_accel.db import schema
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class TestMigration(testtools.TestCase):
    scenarios = database.SCENARIOS
    backend: str

    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(
            database.Database(self.backend, tables=False))

    def test_steps_lead_to_the_schema(self) -> None:
        migration.sync()
        with self.database.engine.connect() as connection:
            context = alembic_migration.MigrationContext.configure(
                connection, opts={'compare_type': True,
                                  'compare_server_default': True})
            self.assertEqual([], autogenerate.compare_metadata(
                context, schema.METADATA))

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
            exceptions.InvalidRequest, migration.sync, 'frob')
        self.assertIn('frob', str(error))
        self.assertIsNone(migration.version())
