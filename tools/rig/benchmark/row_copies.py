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

"""Copies of the rows of one host, for a cloud of thousands of hosts.

A host that reports takes tens of milliseconds. So one host is made as a real
one is, and the rows that it has in each database are copied. A copy differs
from them in its names and uuids, in the same way in all databases.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
import uuid

from oslo_utils import uuidutils
import sqlalchemy as sa

_HOSTS_AT_ONCE = 250


@dataclasses.dataclass(frozen=True)
class Template:
    """The rows of one host in one table.

    :ivar shifted: numeric column -> how much more it has in each further copy;
        the database numbers the column ``id`` itself, unless it is here
    """

    table: sa.Table
    rows: Sequence[Mapping[str, Any]]
    shifted: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def copies(
        self, names: Collection[str], number: int
    ) -> Iterator[dict[str, Any]]:
        """The rows of a copy.

        :param names: the texts that differ in each copy, uuids included
        :param number: of the copy, from 1
        """
        for row in self.rows:
            yield {
                column: self._value(column, value, names, number)
                for column, value in row.items()
                if column != 'id' or column in self.shifted
            }

    def _value(
        self, column: str, value: Any, names: Collection[str], number: int
    ) -> Any:
        if value is None:
            return None
        if column in self.shifted:
            return value + number * self.shifted[column]
        if isinstance(value, str) and value in names:
            return renamed(value, number)
        return value


def renamed(name: str, number: int) -> str:
    """What a name or uuid of the host is in a copy."""
    if uuidutils.is_uuid_like(name):
        return str(uuid.uuid5(uuid.UUID(name), str(number)))
    return f'{name}-{number}'


def read(
    connection: sa.Connection,
    table: sa.Table,
    shifted: Mapping[str, int] | None = None,
) -> Template:
    """All rows of a table."""
    rows = connection.execute(sa.select(table)).mappings().all()
    return Template(table, [dict(row) for row in rows], shifted or {})


def insert(
    engine: sa.Engine,
    templates: Sequence[Template],
    names: Collection[str],
    amount: int,
) -> None:
    """Insert copies.

    :param templates: in the order of their foreign keys
    """
    for first in range(1, amount + 1, _HOSTS_AT_ONCE):
        numbers = range(first, min(first + _HOSTS_AT_ONCE, amount + 1))
        with engine.begin() as connection:
            for template in templates:
                rows = [
                    row
                    for number in numbers
                    for row in template.copies(names, number)
                ]
                if rows:
                    connection.execute(sa.insert(template.table), rows)
