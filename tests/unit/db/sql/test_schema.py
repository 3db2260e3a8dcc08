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
import testtools

from nova_accel.db.sql import schema


class TestTables(testtools.TestCase):
    def test_indexes_fit_into_those_of_innodb(self) -> None:
        for table in schema.METADATA.tables.values():
            keys = [list(index.columns) for index in table.indexes] + [
                list(constraint.columns)
                for constraint in table.constraints
                if isinstance(constraint, sa.UniqueConstraint)
            ]
            for columns in keys:
                # Four bytes is what a character of utf8mb4 may take.
                size = sum(
                    4 * (getattr(column.type, 'length', None) or 2)
                    for column in columns
                )
                self.assertLessEqual(size, 3072, f'{table.name} {columns}')
