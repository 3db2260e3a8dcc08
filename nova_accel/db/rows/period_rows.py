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

"""The periods in which servers hold units.

A period begins in the transaction that gives a unit to an ARQ, and ends in the
one that takes it back. So the history says what the handles said at any time.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
import functools
from typing import Any

import sqlalchemy as sa

from nova_accel.db.rows import per_row
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema

_TABLE = schema.HELD_PERIODS
_ARQS = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES

#: ARQs with the units that they hold.
HELD = _ARQS.join(_HANDLES).join(_DEPLOYABLES).join(_DEVICES)

#: The kind of a unit, for a bill. Only units of devices that are handed out in
#: parts have a shape: the vGPU type, or the shape that a group may ask for.
PRODUCT = _DEVICES.c.product
SHAPE = sa.case((_DEVICES.c.type == 'VGPU', _DEPLOYABLES.c.name), else_='')

_BEGUN = (
    _ARQS.c.uuid,
    _ARQS.c.project_id,
    _ARQS.c.instance_uuid,
    _ARQS.c.resource_class,
    PRODUCT,
    SHAPE,
    clock.now(),
)
_COLUMNS = (
    'arq_uuid',
    'project_id',
    'instance_uuid',
    'resource_class',
    'product',
    'shape',
    'began_at',
)


def begin(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """Begin the periods of ARQs that have got their handles."""
    connection.execute(
        _beginning(len(arq_uuids)), per_row.keys(_ARQS.c.uuid, arq_uuids)
    )


def begin_of_host(connection: sa.Connection, hostname: str) -> None:
    """Begin the periods of all ARQs of a host that have handles."""
    connection.execute(
        _insert(_ARQS.c.hostname == sa.bindparam('hostname')),
        {'hostname': hostname},
    )


def end(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """End the periods of ARQs; one that holds nothing has none."""
    connection.execute(
        _ending(len(arq_uuids)), per_row.keys(_TABLE.c.arq_uuid, arq_uuids)
    )


def end_of_host(connection: sa.Connection, hostname: str) -> None:
    """End the periods of all ARQs of a host."""
    connection.execute(
        sa.update(_TABLE)
        .where(
            _TABLE.c.ended_at.is_(None),
            _TABLE.c.arq_uuid.in_(
                sa.select(_ARQS.c.uuid).where(_ARQS.c.hostname == hostname)
            ),
        )
        .values(ended_at=clock.now())
    )


def rename(connection: sa.Connection, hostname: str) -> None:
    """Call the units that ARQs of a host have as the host calls them now."""
    held = sa.select(PRODUCT).select_from(HELD)
    its_own = held.where(_ARQS.c.uuid == _TABLE.c.arq_uuid)
    connection.execute(
        sa.update(_TABLE)
        .where(
            _TABLE.c.ended_at.is_(None),
            _TABLE.c.arq_uuid.in_(
                held.with_only_columns(_ARQS.c.uuid).where(
                    _ARQS.c.hostname == hostname
                )
            ),
        )
        .values(
            product=its_own.scalar_subquery(),
            shape=its_own.with_only_columns(SHAPE).scalar_subquery(),
        )
    )


def _insert(where: sa.ColumnElement[bool]) -> sa.Insert:
    return sa.insert(_TABLE).from_select(
        _COLUMNS, sa.select(*_BEGUN).select_from(HELD).where(where)
    )


@functools.lru_cache
def _beginning(amount: int) -> sa.Insert:
    return _insert(per_row.is_one(_ARQS.c.uuid, amount))


@functools.lru_cache
def _ending(amount: int) -> sa.Update:
    values: dict[str, Any] = {'ended_at': clock.now()}
    return (
        sa.update(_TABLE)
        .where(
            per_row.is_one(_TABLE.c.arq_uuid, amount),
            _TABLE.c.ended_at.is_(None),
        )
        .values(values)
    )
