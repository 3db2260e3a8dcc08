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

import subprocess
import sys

from db import next_release
import testtools

from nova_accel.db.migrations import migration
from nova_accel.db.migrations import schema_version


class TestNewest(testtools.TestCase):
    def test_it_is_that_of_the_steps(self) -> None:
        self.assertEqual(migration.newest(), schema_version.NEWEST)

    def test_older_ones_are_known_and_newer_ones_are_not(self) -> None:
        self.assertTrue(migration.is_known(schema_version.NEWEST))
        self.assertFalse(migration.is_known(next_release.VERSION))
        self.useFixture(next_release.NextRelease())
        self.assertTrue(migration.is_known(schema_version.NEWEST))
        self.assertTrue(migration.is_known(next_release.VERSION))
        self.assertEqual(next_release.VERSION, migration.newest())

    def test_alembic_is_not_imported(self) -> None:
        code = (
            'import sys; from nova_accel.api import app; '
            'sys.exit("alembic" in sys.modules)'
        )
        subprocess.run([sys.executable, '-c', code], check=True)
