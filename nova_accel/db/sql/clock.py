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

"""The database's clock, by which the silence of hosts is measured.

Several API servers and nova-schedulers write and compare these times, and the
clocks of two machines differ. A time of :func:`ago` is compared only with
what :func:`ago` has written.
"""

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import expression

from nova_accel.db.sql import utc_datetime


class _Ago(expression.FunctionElement[datetime.datetime]):
    """Whole seconds in UTC, as ``UtcDateTime`` has them."""

    type = utc_datetime.UtcDateTime()
    name = 'ago'
    inherit_cache = True


def ago(seconds: int | sa.BindParameter[int]) -> sa.ColumnElement[Any]:
    """The database's time, this many seconds ago."""
    return _Ago(
        sa.literal(seconds, sa.Integer)
        if isinstance(seconds, int)
        else seconds
    )


def now() -> sa.ColumnElement[Any]:
    """The database's time now."""
    return ago(0)


@compiler.compiles(_Ago, 'sqlite')
def _sqlite(element: _Ago, compiled: Any, **kwargs: Any) -> str:
    # In the format that SQLAlchemy stores: SQLite compares times as texts.
    seconds = compiled.process(element.clauses, **kwargs)
    return (
        "strftime('%Y-%m-%d %H:%M:%S.000000', 'now', "
        f"(0 - {seconds}) || ' seconds')"
    )


@compiler.compiles(_Ago, 'mysql')
def _mysql(element: _Ago, compiled: Any, **kwargs: Any) -> str:
    seconds = compiled.process(element.clauses, **kwargs)
    return f'(utc_timestamp() - INTERVAL {seconds} SECOND)'


@compiler.compiles(_Ago, 'postgresql')
def _postgresql(element: _Ago, compiled: Any, **kwargs: Any) -> str:
    # Not the transaction's time: it may have waited for another one.
    seconds = compiled.process(element.clauses, **kwargs)
    return (
        "(date_trunc('second', timezone('UTC', statement_timestamp())) "
        f'- make_interval(secs => {seconds}))'
    )


class _Seconds(expression.FunctionElement[int]):
    type = sa.Integer()
    name = 'seconds'
    inherit_cache = True


def seconds(
    begin: sa.ColumnElement[Any], end: sa.ColumnElement[Any]
) -> sa.ColumnElement[int]:
    """The whole seconds from one time to another one."""
    return _Seconds(begin, end)


def _times(element: _Seconds, compiled: Any, **kwargs: Any) -> list[str]:
    return [compiled.process(each, **kwargs) for each in element.clauses]


@compiler.compiles(_Seconds, 'sqlite')
def _sqlite_seconds(element: _Seconds, compiled: Any, **kwargs: Any) -> str:
    begin, end = _times(element, compiled, **kwargs)
    return f"CAST(strftime('%s', {end}) - strftime('%s', {begin}) AS INTEGER)"


@compiler.compiles(_Seconds, 'mysql')
def _mysql_seconds(element: _Seconds, compiled: Any, **kwargs: Any) -> str:
    begin, end = _times(element, compiled, **kwargs)
    return f'TIMESTAMPDIFF(SECOND, {begin}, {end})'


@compiler.compiles(_Seconds, 'postgresql')
def _postgresql_seconds(
    element: _Seconds, compiled: Any, **kwargs: Any
) -> str:
    begin, end = _times(element, compiled, **kwargs)
    return f'CAST(EXTRACT(EPOCH FROM {end} - {begin}) AS BIGINT)'
