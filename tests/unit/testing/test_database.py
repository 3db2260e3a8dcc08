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

import unittest

import fixtures
from oslo_db import exception as db_exc
import testtools

from nova_accel.testing import database


class TestServerThatIsAbsent(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(
            fixtures.EnvironmentVariable(
                'OS_TEST_DBAPI_ADMIN_CONNECTION',
                'mysql+pymysql://root@127.0.0.1:1/',
            )
        )

    def test_skips(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable('CI'))
        for backend in ('mysql', 'postgresql'):
            self.assertRaises(
                unittest.SkipTest, self.useFixture, database.Database(backend)
            )

    def test_fails_where_all_must_be_tested(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable('CI', 'true'))
        for backend in ('mysql', 'postgresql'):
            self.assertRaises(
                db_exc.BackendNotAvailable,
                self.useFixture,
                database.Database(backend),
            )
