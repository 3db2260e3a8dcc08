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


"""Pages of lists, found by the place of the marker in their order.

So a page costs the same wherever it is. A row that is added or deleted
meanwhile makes no other row be missed or listed twice. Everything here is a
part of its caller's transaction.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import typed
from nova_accel.model import paging

#: A key that a list may be sorted by -> its column or expression.
Keys = Mapping[str, sa.ColumnElement[Any]]

_R = TypeVar('_R')


class _Term(NamedTuple):
    """A part of an order."""

    value: sa.ColumnElement[Any]
    descending: bool

    @property
    def order(self) -> sa.ColumnElement[Any]:
        return self.value.desc() if self.descending else self.value.asc()

    def is_after(self, last: Any) -> sa.ColumnElement[bool]:
        if last is None:
            return sa.false()
        return self.value < last if self.descending else self.value > last

    def is_same(self, last: Any) -> sa.ColumnElement[bool]:
        return self.value.is_(None) if last is None else self.value == last


def columns(table: sa.Table, *names: str) -> Keys:
    """The keys that are columns of a table."""
    return {name: table.c[name] for name in names}


def read(
    connection: sa.Connection,
    kind: type[_R],
    query: sa.Select[Any],
    where: Sequence[sa.ColumnElement[bool]],
    page: paging.Page,
    table: sa.Table,
    keys: Keys,
) -> list[_R]:
    """The rows of a page; rows with equal keys are sorted by their age.

    :param kind: the TypedDict of the columns that the query selects
    :param query: selects all rows that the caller may know of
    :param where: conditions for the rows that are asked for
    :param table: the table whose rows are listed, each once
    :param keys: all keys that the page may be sorted by
    :raises InvalidRequest: there is no such marker
    """
    terms = [
        term
        for key in page.sort
        for term in _terms(keys[key.name], key.descending)
    ]
    # This makes the order total.
    terms.append(
        _Term(table.c.id, page.sort[-1].descending if page.sort else False)
    )
    if page.marker is not None:
        where = (
            *where,
            _is_after(connection, query, page.marker, table, terms),
        )
    return typed.rows(
        kind,
        connection.execute(
            query.where(*where)
            .order_by(*(term.order for term in terms))
            .limit(page.limit)
        ),
    )


def _terms(value: sa.ColumnElement[Any], descending: bool) -> list[_Term]:
    """The terms of one key, for which NULL is less than any value.

    Databases differ in where they sort NULL.
    """
    terms = [_Term(value, descending)]
    if getattr(value, 'nullable', False):
        has_value = sa.case((value.is_(None), 0), else_=1)
        terms.insert(0, _Term(has_value, descending))
    return terms


def _is_after(
    connection: sa.Connection,
    query: sa.Select[Any],
    marker: str,
    table: sa.Table,
    terms: Sequence[_Term],
) -> sa.ColumnElement[bool]:
    last = connection.execute(
        query.with_only_columns(
            *(
                term.value.label(f'term_{number}')
                for number, term in enumerate(terms)
            )
        ).where(table.c.uuid == marker)
    ).one_or_none()
    if last is None:
        raise exceptions.InvalidRequest(
            f'Marker not found: none of the {table.name} has '
            f'uuid={marker[:255]}'
        )
    return sa.or_(
        *(
            sa.and_(
                *(
                    before.is_same(last[place])
                    for place, before in enumerate(terms[:number])
                ),
                term.is_after(last[number]),
            )
            for number, term in enumerate(terms)
        )
    )
