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

"""How long projects have held which units, from the history of all periods."""

from collections.abc import Collection
import datetime
from typing import TypedDict

import sqlalchemy as sa

from nova_accel.db.rows import typed
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.db.sql import utc_datetime

_TABLE = schema.HELD_PERIODS

#: How many old periods one transaction deletes.
_MOST_FORGOTTEN = 10000


class UsageRow(TypedDict):
    """The units of one product, class and shape that a project has held.

    ``units`` is how many units it had at any time, one after the other or at
    once.
    """

    project_id: str | None
    product: str
    resource_class: str
    shape: str
    units: int
    unit_seconds: int


class PeriodRow(TypedDict):
    """The last period of an ARQ; ``ended_at`` is None while it goes on."""

    arq_uuid: str
    product: str
    shape: str
    began_at: datetime.datetime
    ended_at: datetime.datetime | None


_START: sa.BindParameter[datetime.datetime] = sa.bindparam(
    'start', type_=utc_datetime.UtcDateTime
)
_END: sa.BindParameter[datetime.datetime] = sa.bindparam(
    'end', type_=utc_datetime.UtcDateTime
)
_FROM = sa.case((_TABLE.c.began_at < _START, _START), else_=_TABLE.c.began_at)
_LAST = sa.func.coalesce(_TABLE.c.ended_at, clock.now())
_UNTIL = sa.case((_LAST > _END, _END), else_=_LAST)
_KEY = tuple(
    _TABLE.c[name]
    for name in ('project_id', 'product', 'resource_class', 'shape')
)

_USAGE = (
    sa.select(
        *_KEY,
        sa.func.count().label('units'),
        # PostgreSQL and MySQL make a decimal number of the sum.
        sa.cast(
            sa.func.sum(clock.seconds(_FROM, _UNTIL)), sa.BigInteger
        ).label('unit_seconds'),
    )
    .where(
        _TABLE.c.began_at < _END,
        sa.or_(_TABLE.c.ended_at.is_(None), _TABLE.c.ended_at > _START),
        _FROM < _UNTIL,
    )
    .group_by(*_KEY)
    .order_by(*_KEY)
)

_PERIODS = (
    sa.select(
        *(
            _TABLE.c[name]
            for name in (
                'arq_uuid',
                'product',
                'shape',
                'began_at',
                'ended_at',
            )
        )
    )
    .where(_TABLE.c.arq_uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_TABLE.c.id)
)


@engine.retried
def get(
    start: datetime.datetime,
    end: datetime.datetime,
    project_id: str | None = None,
    most: int | None = None,
) -> list[UsageRow]:
    """The units that projects have held between two times, by one statement.

    A unit that is still held counts until now.

    :param project_id: the only project; None for all
    :param most: how many rows are given at most
    """
    query = _USAGE.limit(most)
    if project_id is not None:
        query = query.where(_TABLE.c.project_id == project_id)
    with engine.reader() as connection:
        return typed.rows(
            UsageRow, connection.execute(query, {'start': start, 'end': end})
        )


@engine.retried
def get_last(arq_uuids: Collection[str]) -> dict[str, PeriodRow]:
    """ARQ uuid -> its last period; an ARQ that never held a unit has none."""
    if not arq_uuids:
        return {}
    with engine.reader() as connection:
        return {
            row['arq_uuid']: row
            for row in typed.rows(
                PeriodRow,
                connection.execute(_PERIODS, {'uuids': list(arq_uuids)}),
            )
        }


@engine.retried
def forget_old(days: int) -> int:
    """Delete periods that ended so many days ago; some, if there are many.

    :returns: how many
    """
    with engine.writer() as connection:
        # MySQL takes no LIMIT in a subquery of IN.
        old = connection.scalars(
            sa.select(_TABLE.c.id)
            .where(_TABLE.c.ended_at < clock.ago(days * 24 * 60 * 60))
            .limit(_MOST_FORGOTTEN)
        ).all()
        if old:
            connection.execute(sa.delete(_TABLE).where(_TABLE.c.id.in_(old)))
    return len(old)
