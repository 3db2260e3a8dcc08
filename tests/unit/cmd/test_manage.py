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


from db import next_release
import sqlalchemy as sa

from nova_accel.cmd import manage
from nova_accel.db import device_profile
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from nova_accel.testing import reports
from unit.cmd import base


class TestManage(base.ManageTestCase):
    def test_sync(self) -> None:
        self.assertEqual(0, self.run_command('db', 'version'))
        self.assertIn('none (no tables: run', self.output.getvalue())
        for _again in range(2):
            self.assertEqual(0, self.run_command('db', 'sync'))
        self.assertEqual([], device_profile.get_all())

    def test_version(self) -> None:
        self.run_command('db', 'sync')
        self.assertEqual(0, self.run_command('db', 'version'))
        synced, told = self.output.getvalue().splitlines()
        version, words = told.split(maxsplit=1)
        self.assertEqual(f'The database is at version {version}', synced)
        self.assertEqual('(the tables of this release)', words)
        self.assertEqual(0, self.run_command('db', 'sync', version))

    def test_unknown_version(self) -> None:
        self.assertEqual(1, self.run_command('db', 'sync', 'frob'))
        self.assertIn('frob', self.errors.getvalue())
        self.assertNotIn('Traceback', self.errors.getvalue())

    def test_unset_connection(self) -> None:
        self.assertEqual(
            1, self.run_command('db', 'sync', configuration='[DEFAULT]\n')
        )
        self.assertIn(
            '[nova_accel_database] connection', self.errors.getvalue()
        )
        self.assertNotIn('Traceback', self.errors.getvalue())

    def test_check(self) -> None:
        self.assertEqual(1, self.run_command('db', 'check'))
        self.assertIn('no tables: run "nova-accel', self.output.getvalue())
        self.run_command('db', 'sync')
        self.assertEqual(0, self.run_command('db', 'check'))
        self.assertIn('the tables of this release', self.output.getvalue())
        self.useFixture(next_release.NextRelease())
        self.assertEqual(1, self.run_command('db', 'check'))
        self.assertIn('this one needs next: run', self.output.getvalue())
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema_version.TABLE).values(version_num='newer')
            )
        self.assertEqual(0, self.run_command('db', 'check'))
        self.assertIn('a newer release: upgrade', self.output.getvalue())

    def test_a_database_that_is_away(self) -> None:
        for command in (('db', 'check'), ('db', 'sync')):
            self.assertEqual(
                1,
                self.run_command(
                    *command,
                    configuration=(
                        '[nova_accel_database]\nconnection = '
                        'mysql+pymysql://user:secret@127.0.0.1:9/accel\n'
                    ),
                ),
            )
        self.assertIn(
            'does not answer ([nova_accel_database] connection names '
            '127.0.0.1:9)',
            self.errors.getvalue(),
        )
        self.assertNotIn('secret', self.errors.getvalue())

    def test_no_part_of_a_password_is_printed(self) -> None:
        connection = 'connection = mysql+pymysql://user:un@secret@db/accel'
        for line in (connection, connection.replace('=', ' ', 1)):
            for command in (
                ('db', 'check'),
                ('db', 'sync'),
                ('db', 'version'),
                ('host', 'list'),
                ('host', 'forget', 'compute-1'),
                ('audit',),
                ('explain', 'profile'),
                ('metrics',),
                ('fleet', 'list'),
            ):
                self.assertNotEqual(
                    0,
                    self.run_command(
                        *command,
                        configuration=(f'[nova_accel_database]\n{line}\n'),
                    ),
                )
        self.assertIn('has an "@"', self.errors.getvalue())
        self.assertNotIn('secret', self.errors.getvalue())

    def test_help_needs_no_configuration(self) -> None:
        missing = str(self.directory / 'frob.conf')
        for words, told in (
            (['help'], 'db check'),
            (['help', 'host', 'forget'], '--dry-run'),
            (['host', 'list', '-h'], 'host_silence_s'),
        ):
            self.output.truncate(0)
            self.assertEqual(
                0, manage.main(['--config-file', missing, *words])
            )
            self.assertIn(told, self.output.getvalue())

    def test_missing_configuration(self) -> None:
        missing = str(self.directory / 'frob.conf')
        self.assertEqual(
            1, manage.main(['--config-file', missing, 'db', 'sync'])
        )
        self.assertIn(missing, self.errors.getvalue())

    def test_without_a_command(self) -> None:
        self.run_command()
        self.assertIn('db sync', self.output.getvalue())

    def test_explain(self) -> None:
        self.run_command('db', 'sync')
        device_profile.create('gold', [{'resources:FPGA': '1'}])
        reports.SimulatedHost().report()
        self.assertEqual(0, self.run_command('explain', 'gold'))
        self.assertIn('compute-1', self.output.getvalue())
        self.assertEqual(1, self.run_command('explain', 'silver'))
        self.assertIn('silver', self.errors.getvalue())
        self.assertNotIn('Traceback', self.errors.getvalue())
