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


from nova_accel.cmd import manage
from nova_accel.db import device_profile
from nova_accel.testing import reports
from unit.cmd import base


class TestManage(base.ManageTestCase):
    def test_sync(self) -> None:
        self.assertEqual(0, self.run_command('db', 'version'))
        self.assertEqual('\n', self.output.getvalue())
        for _again in range(2):
            self.assertEqual(0, self.run_command('db', 'sync'))
        self.assertEqual([], device_profile.get_all())

    def test_version(self) -> None:
        self.run_command('db', 'sync')
        self.assertEqual(0, self.run_command('db', 'version'))
        synced, version = self.output.getvalue().splitlines()
        self.assertEqual(f'The database is at version {version}', synced)
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
