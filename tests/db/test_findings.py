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

from db.rows import test_finding_rows
from nova_accel.db import findings
from nova_accel.db import fleet
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding

load_tests = testscenarios.load_tests_apply_scenarios


class TestRead(test_finding_rows.FindingsTestCase):
    def test_the_kind_of_a_newer_host(self) -> None:
        found = finding.Finding('colder_than_wanted', 'brr \N{SNOWMAN}')
        self.report(found)
        self.assertEqual([('compute-1', found)], self.read())

    def test_the_fleet_has_them(self) -> None:
        self.report(test_finding_rows.GONE)
        self.assertEqual(findings.read(), list(fleet.read(300).findings))

    def test_the_release_before_forgets_a_host(self) -> None:
        """It does not know the table."""
        self.report(test_finding_rows.GONE)
        with engine.writer() as connection:
            for table in (
                schema.ATTACH_HANDLES,
                schema.DEPLOYABLES,
                schema.DEVICES,
                schema.HOSTS,
            ):
                connection.execute(sa.delete(table))
        self.assertEqual([], self.read())
