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

"""Statements for a number of rows, whose text depends on that number alone.

Such a statement is built once for each number. SQLAlchemy's own list of any
length takes as long to be written out as the rest of a short statement.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import elements

#: A column of a table, or of an alias of one.
_Column = elements.KeyedColumnElement[Any]


def is_one(key: _Column, amount: int) -> sa.ColumnElement[bool]:
    """``key IN (...)``, with this many bound values."""
    return key.in_([_parameter(key, number) for number in range(amount)])


def keys(key: _Column, found: Iterable[str]) -> dict[str, Any]:
    """The bound values of :func:`is_one`."""
    return {
        _name(key.key, number): value for number, value in enumerate(found)
    }


def values(
    key: _Column, columns: Iterable[_Column], amount: int
) -> dict[str, sa.ColumnElement[Any]]:
    """Column name -> its new value in an UPDATE, by the key of the row."""
    if amount == 1:
        return {column.key: _parameter(column, 0) for column in columns}
    return {
        column.key: sa.case(
            {
                _parameter(key, number): _parameter(column, number)
                for number in range(amount)
            },
            value=key,
        )
        for column in columns
    }


def parameters(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The bound values of an UPDATE.

    :param rows: column name -> value, with the key, for each row
    """
    return {
        _name(column, number): value
        for number, row in enumerate(rows)
        for column, value in row.items()
    }


def _parameter(column: _Column, number: int) -> sa.BindParameter[Any]:
    return sa.bindparam(_name(column.key, number), type_=column.type)


def _name(column: str, number: int) -> str:
    return f'{column}_{number}'
