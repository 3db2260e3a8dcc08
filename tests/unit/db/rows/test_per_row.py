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

from typing import Any

import sqlalchemy as sa
import testtools

from nova_accel.db.rows import per_row


class TestPerRow(testtools.TestCase):
    def updated(self, *rows: dict[str, Any]) -> list[tuple[Any, ...]]:
        """What is in the table when so many rows got what is theirs."""
        engine = sa.create_engine('sqlite://')
        metadata = sa.MetaData()
        table = sa.Table(
            'things',
            metadata,
            sa.Column('uuid', sa.String),
            sa.Column('place', sa.String),
            sa.Column('size', sa.Integer),
        )
        metadata.create_all(engine)
        update = (
            sa.update(table)
            .where(
                per_row.is_one(table.c.uuid, len(rows)),
            )
            .values(
                per_row.values(
                    table.c.uuid, [table.c.place, table.c.size], len(rows)
                )
            )
        )
        with engine.begin() as connection:
            connection.execute(
                sa.insert(table),
                [{'uuid': uuid, 'place': 'old', 'size': 0} for uuid in 'abc'],
            )
            done = connection.execute(update, per_row.parameters(rows))
            self.assertEqual(len(rows), done.rowcount)
            return [
                tuple(row)
                for row in connection.execute(
                    sa.select(table).order_by('uuid')
                )
            ]

    def test_each_row_gets_what_is_its(self) -> None:
        self.assertEqual(
            [('a', 'here', 1), ('b', 'old', 0), ('c', 'there', None)],
            self.updated(
                {'uuid': 'a', 'place': 'here', 'size': 1},
                {'uuid': 'c', 'place': 'there', 'size': None},
            ),
        )

    def test_one_row(self) -> None:
        self.assertEqual(
            [('a', 'old', 0), ('b', 'here', None), ('c', 'old', 0)],
            self.updated({'uuid': 'b', 'place': 'here', 'size': None}),
        )
