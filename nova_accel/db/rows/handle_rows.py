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

"""Handing attach handles out and taking them back.

Handles are always taken in the same way:
:func:`nova_accel.db.rows.free_handles.read` reads which are free,
:meth:`nova_accel.model.units.handle_stock.HandleStock.allot` decides in
memory, and :func:`take` takes them in a single compare-and-set. A transaction
that loses the race begins again.
"""

from collections.abc import Collection
from collections.abc import Sequence
import functools
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import card_rows
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import per_row
from nova_accel.db.rows import period_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model.units import handle_stock

_TABLE = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES
_HOSTS = schema.HOSTS

_IS_CLEANED = (
    sa.select(_DEPLOYABLES.c.is_cleaned)
    .where(_DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid)
    .scalar_subquery()
)


def take(connection: sa.Connection, allotted: handle_stock.Allotment) -> None:
    """Take the handles for their ARQs, if all of them are still free.

    The ARQs are bound in their rows.

    :raises RetryRequest: another transaction took one, or one cannot be used
        any more; :func:`nova_accel.db.sql.engine.retried` makes it
        AcceleratorsBusy in the end
    """
    if not allotted.arqs:
        return
    card_rows.check_room(connection, allotted.cards)
    taken = connection.execute(
        _taking(len(allotted.arqs)),
        per_row.parameters(
            [
                {'uuid': handle_uuid, 'arq_uuid': arq_uuid}
                for handle_uuid, arq_uuid in allotted.arqs.items()
            ]
        ),
    )
    if taken.rowcount != len(allotted.arqs):
        raise db_exc.RetryRequest(
            exceptions.AcceleratorsBusy(
                'other requests took the free attach handles'
            )
        )
    period_rows.begin(connection, allotted.arqs.values())


@functools.lru_cache
def _taking(amount: int) -> sa.Update:
    """The statement that takes this many handles."""
    return (
        sa.update(_TABLE)
        .where(
            per_row.is_one(_TABLE.c.uuid, amount),
            unit_states.is_unused(),
            sa.exists().where(
                _DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid,
                _DEVICES.c.uuid == _DEPLOYABLES.c.device_uuid,
                unit_states.is_usable(),
            ),
        )
        .values(per_row.values(_TABLE.c.uuid, [_TABLE.c.arq_uuid], amount))
    )


def give_back(connection: sa.Connection, arq_uuids: Collection[str]) -> None:
    """Free the handles of ARQs, which must still be bound in their rows.

    A handle that is cleaned after each guest becomes unclean. Another one is
    deleted if its host no longer reports it. The next report of that host is
    compared as a whole, so that the device can go, too.
    """
    if not arq_uuids:
        return
    period_rows.end(connection, arq_uuids)
    freed = connection.execute(
        _freeing(len(arq_uuids)), per_row.keys(_TABLE.c.arq_uuid, arq_uuids)
    ).rowcount
    # An ARQ holds one handle at most.
    if freed < len(arq_uuids):
        _give_back_others(connection, arq_uuids)


@functools.lru_cache
def _freeing(amount: int) -> sa.Update:
    """Frees the handles of so many ARQs that need nothing more.

    Their hosts report them, and they are not cleaned after each guest.
    """
    return (
        sa.update(_TABLE)
        .where(
            per_row.is_one(_TABLE.c.arq_uuid, amount),
            _TABLE.c.present,
            sa.not_(_IS_CLEANED),
        )
        .values(arq_uuid=None)
    )


def _give_back_others(
    connection: sa.Connection, arq_uuids: Collection[str]
) -> None:
    held = connection.execute(
        sa.select(
            _TABLE.c.uuid,
            _TABLE.c.arq_uuid,
            _TABLE.c.present,
            _IS_CLEANED.label('is_cleaned'),
        )
        .where(_TABLE.c.arq_uuid.in_(list(arq_uuids)))
        .order_by(_TABLE.c.uuid)
        .with_for_update()
    ).all()
    unclean = [handle for handle in held if handle.is_cleaned]
    absent = [
        handle for handle in held if not (handle.present or handle.is_cleaned)
    ]
    if not held:
        return
    if absent:
        connection.execute(
            sa.delete(_TABLE).where(
                _TABLE.c.uuid.in_([handle.uuid for handle in absent])
            )
        )
        connection.execute(
            sa.update(_HOSTS)
            .where(_is_host_of(absent))
            .values(report_digest='', changed_at=clock.now())
        )
    if unclean:
        order_rows.change(connection, _is_host_of(unclean))
        _mark_unclean(connection, [handle.uuid for handle in unclean])
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_([handle.uuid for handle in held]))
        .values(arq_uuid=None)
    )


def _is_host_of(held: Sequence[sa.Row[Any]]) -> sa.ColumnElement[bool]:
    arqs = schema.ARQS
    return _HOSTS.c.hostname.in_(
        sa.select(arqs.c.hostname).where(
            arqs.c.uuid.in_([handle.arq_uuid for handle in held])
        )
    )


def _mark_unclean(connection: sa.Connection, uuids: Sequence[str]) -> None:
    """Mark handles as unclean, by the present orders of their hosts."""
    revision = (
        sa.select(_HOSTS.c.orders)
        .select_from(_DEPLOYABLES.join(_DEVICES).join(_HOSTS))
        .where(_DEPLOYABLES.c.uuid == _TABLE.c.deployable_uuid)
    )
    connection.execute(
        sa.update(_TABLE)
        .where(_TABLE.c.uuid.in_(uuids))
        .values(unclean_since=revision.scalar_subquery(), unclean_reason=None)
    )
