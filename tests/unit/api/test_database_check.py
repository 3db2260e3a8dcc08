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

import fixtures
from oslo_config import cfg
from oslo_middleware import healthcheck
import testtools
import webob

from nova_accel import exceptions
from nova_accel.api import database_check
from nova_accel.db import health
from nova_accel.testing import database


class DatabaseCheckTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.asked = 0

    def check(self, tables: bool = True) -> database_check.DatabaseCheck:
        self.useFixture(database.Database(tables=tables))
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.health.check', self.ask)
        )
        return database_check.DatabaseCheck(cfg.ConfigOpts(), {})

    def ask(self, real=health.check) -> None:
        self.asked += 1
        real()

    def test_it_answers(self) -> None:
        check = self.check()
        for _again in range(5):
            self.assertTrue(check.healthcheck(80).available)
        self.assertEqual(1, self.asked)

    def test_no_tables(self) -> None:
        check = self.check(tables=False)
        for _again in range(5):
            found = check.healthcheck(80)
            self.assertFalse(found.available)
            self.assertIn('nova-accel-manage db sync', found.reason)
        self.assertEqual(1, self.asked)

    def test_anew_after_a_while(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.api.database_check.KEPT_S', 0)
        )
        check = self.check()
        for _again in range(3):
            check.healthcheck(80)
        self.assertEqual(3, self.asked)

    def test_the_reason_names_no_host(self) -> None:
        def refuse() -> None:
            raise exceptions.ServiceUnavailable('db-7 is down')

        check = self.check()
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.health.check', refuse)
        )
        found = check.healthcheck(80)
        self.assertFalse(found.available)
        self.assertNotIn('db-7', found.reason)
        self.assertIn('db-7', found.details)

    def test_in_the_middleware(self) -> None:
        """As ``api-paste.ini`` names it."""
        for tables, status in ((True, 200), (False, 503)):
            self.check(tables)
            application = healthcheck.Healthcheck.app_factory(
                {}, backends='nova_accel_database'
            )
            answer = webob.Request.blank('/').get_response(application)
            self.assertEqual(status, answer.status_int, answer.text)
            self.assertIn('database of accelerators', answer.text)
