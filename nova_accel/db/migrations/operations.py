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

"""The operations that the steps of the schema are made of.

MySQL commits each of them at once, so an interrupted step has done a part of
its work. Each operation checks what exists, so that the step can be run again.
"""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')


def create_table(name: str, *items: sa.schema.SchemaItem) -> None:
    """A table with a number for each row, and the collation of all tables."""
    if not sa.inspect(op.get_bind()).has_table(name):
        op.create_table(
            name,
            sa.Column('id', sa.Integer, nullable=False),
            *items,
            sa.PrimaryKeyConstraint('id', name=f'pk_{name}'),
            mysql_engine='InnoDB',
            mysql_charset='utf8mb4',
            mysql_collate='utf8mb4_bin',
        )


def add_column(table: str, column: sa.Column[Any]) -> None:
    there = sa.inspect(op.get_bind()).get_columns(table)
    if column.name not in [each['name'] for each in there]:
        op.add_column(table, column)


def create_index(table: str, *columns: str) -> None:
    name = f'ix_{table}_{"_".join(columns)}'
    there = sa.inspect(op.get_bind()).get_indexes(table)
    if name not in [each['name'] for each in there]:
        op.create_index(name, table, list(columns))


def unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(
        *columns, name=f'uq_{table}_{"_".join(columns)}'
    )


def foreign_key(
    table: str, column: str, target: str, ondelete: str | None = None
) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [target], name=f'fk_{table}_{column}', ondelete=ondelete
    )
