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

import io

import fixtures

from nova_accel.cmd import status
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from unit.cmd import check_base

Check = check_base.Check


class TestUpgradeCheck(check_base.CheckTestCase):
    def test_all_is_well(self) -> None:
        self.sync()
        code, results = self.check()
        self.assertEqual(0, code)
        self.assertEqual(
            [0] * len(Check), [each['result'] for each in results]
        )
        # It says what it has looked at.
        self.assertIn('placement.conf', results[Check.CANDIDATES]['details'])

    def test_database(self) -> None:
        code, results = self.check()
        self.assertEqual(2, code)
        self.assertEqual(
            [2, 0, 1, 0, 1, 1, 1, 0, 1, 0],
            [result['result'] for result in results],
        )
        self.assertIn(
            'nova-accel-manage db sync', results[Check.DATABASE]['details']
        )
        self.assertIn('is not known', results[Check.HOSTS]['details'])

    def test_a_newer_database(self) -> None:
        """As for a service of the release before, during an upgrade."""
        self.sync()
        with engine.writer() as connection:
            connection.execute(
                schema_version.TABLE.update().values(version_num='newer')
            )
        self.assert_result(1, Check.DATABASE, 'newer than this release')

    def test_no_such_configuration(self) -> None:
        errors = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', errors))
        code = status.main(
            [
                '--config-file',
                str(self.directory / 'no.conf'),
                'upgrade',
                'check',
            ]
        )
        self.forget_arguments()
        self.assertEqual(255, code)
        self.assertIn('no.conf', errors.getvalue())
        self.assertNotIn('Traceback', errors.getvalue())

    def test_no_connection(self) -> None:
        self.database = ''
        code, results = self.check()
        self.assertEqual(2, code)
        self.assertIn(
            '[nova_accel_database] connection',
            results[Check.DATABASE]['details'],
        )

    def test_what_nova_scheduler_loads(self) -> None:
        self.sync()
        for part in (',AcceleratorFilter', '_accel.scheduler.candidate'):
            self.assert_result(
                2,
                Check.LOADED,
                'enabled_filters',
                check_base.SCHEDULER.replace(part, ''),
            )
        self.assert_result(
            1,
            Check.LOADED,
            'weight_classes',
            check_base.SCHEDULER.replace(
                ',nova_accel.scheduler.weigher', ',other'
            ),
        )
