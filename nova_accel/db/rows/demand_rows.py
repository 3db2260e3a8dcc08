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

"""The rows of the demand for bitstreams.

Everything here is a part of its caller's transaction.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db.rows import per_row
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import demand

CONF = conf.CONF

_TABLE = schema.BITSTREAM_DEMAND

#: How many bitstreams are remembered: more than anybody keeps in stock.
MAX_KNOWN = 1000

_KNOWN = (
    sa.select(_TABLE, clock.now().label('now'))
    .where(
        _TABLE.c.bitstream_id.in_(sa.bindparam('bitstreams', expanding=True))
    )
    # Two transactions that lock the same rows wait for each other.
    .order_by(_TABLE.c.bitstream_id)
    .with_for_update()
)


def count(
    connection: sa.Connection, groups: Iterable[Mapping[str, str]]
) -> None:
    """Count the bitstreams that units were bound for.

    It comes last in a transaction, because many wait for the row of a popular
    bitstream. Without bitstreams it takes no statement.

    :param groups: the stored group of each unit
    """
    amounts = collections.Counter(
        bitstream_id
        for group in groups
        if (bitstream_id := device_profile.bitstream_id(group)) is not None
    )
    if not amounts:
        return
    known = [
        {
            'bitstream_id': row.bitstream_id,
            'weight': weight_now(row) + amounts.pop(row.bitstream_id),
        }
        for row in connection.execute(
            _KNOWN, {'bitstreams': list(amounts)}
        ).all()
    ]
    if known:
        connection.execute(_counting(len(known)), per_row.parameters(known))
    if amounts:
        _add(connection, amounts)


def _add(connection: sa.Connection, amounts: Mapping[str, int]) -> None:
    """Add bitstreams, and forget those that were wanted longest ago."""
    now = connection.execute(sa.select(clock.now())).scalar_one()
    with engine.raced(
        exceptions.Conflict('the bitstream is being counted already')
    ):
        connection.execute(
            sa.insert(_TABLE),
            [
                {'bitstream_id': name, 'weight': amount, 'counted_at': now}
                for name, amount in sorted(amounts.items())
            ],
        )
    old = connection.scalars(
        sa.select(_TABLE.c.id)
        .order_by(_TABLE.c.counted_at.desc(), _TABLE.c.id.desc())
        .offset(MAX_KNOWN)
        # MySQL knows no offset without a limit.
        .limit(MAX_KNOWN)
    ).all()
    if old:
        connection.execute(sa.delete(_TABLE).where(_TABLE.c.id.in_(old)))


@functools.lru_cache
def _counting(amount: int) -> sa.Update:
    """The statement that counts so many bitstreams."""
    return (
        sa.update(_TABLE)
        .where(per_row.is_one(_TABLE.c.bitstream_id, amount))
        .values(
            counted_at=clock.now(),
            **per_row.values(_TABLE.c.bitstream_id, [_TABLE.c.weight], amount),
        )
    )


def weight_now(row: sa.Row[Any]) -> float:
    """The weight of a row of the table that was selected with ``now``."""
    return demand.decayed(
        row.weight,
        (row.now - row.counted_at).total_seconds(),
        CONF.nova_accel.bitstream_demand_half_life_s,
    )
