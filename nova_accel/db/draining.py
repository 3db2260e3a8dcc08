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

"""Hosts that are drained.

The devices of such a host are disabled, also those that it reports later. The
end of the drain enables them again, but none that was disabled before or that
an administrator has disabled since.

A drain may be announced. It changes nothing until its time has come, and
begins with the host's next report then.
"""

import datetime
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.devices import hardware

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES

_IS_DRAINED = _HOSTS.c.drained_at.is_not(None)
_IS_ASKED_FOR = sa.or_(_IS_DRAINED, _HOSTS.c.drained_from.is_not(None))

#: Whether the announced end of a drain is over, by the database's clock.
IS_OVERDUE = sa.case(
    (sa.and_(_IS_DRAINED, _HOSTS.c.drained_until < clock.now()), True),
    else_=False,
)


class DrainRow(TypedDict):
    """A host that is drained, or is to be.

    ``start`` is its beginning if that was announced, and ``requested_at`` is
    None until then. ``devices`` is how many devices are disabled for it.
    """

    hostname: str
    reason: str
    start: datetime.datetime | None
    until: datetime.datetime | None
    requested_at: datetime.datetime | None
    requested_by: str | None
    is_overdue: bool
    devices: int


@engine.retried
def begin(
    hostname: str,
    reason: str,
    until: datetime.datetime | None,
    user_id: str | None,
    start: datetime.datetime | None = None,
) -> None:
    """Drain a host, from its next report on in Placement too.

    A host that is drained already gets the new reason and end. Its devices
    that somebody has enabled meanwhile are disabled again.

    :param until: the end to announce, None for none
    :param start: the beginning to announce; if it is over or None, the drain
        begins at once
    :raises NotFound: the host has never reported
    :raises Conflict: the host is drained already, and the beginning is to come
    """
    change = (
        sa.update(_HOSTS)
        .where(_HOSTS.c.hostname == hostname)
        .values(drained_by=user_id, drain_reason=reason, drained_until=until)
    )
    announce = change.where(~_IS_DRAINED).values(drained_from=start)
    # A beginning that was announced and has come is kept.
    begin_now = change.values(
        drained_at=sa.func.coalesce(_HOSTS.c.drained_at, clock.now()),
        drained_from=sa.case(
            (_HOSTS.c.drained_from <= clock.now(), _HOSTS.c.drained_from)
        ),
    )
    with engine.writer() as connection:
        if start is not None:
            announce = announce.where(clock.now() < start)
            begin_now = begin_now.where(clock.now() >= start)
            if connection.execute(announce).rowcount:
                return
        # This locks the host, so that no report comes in between.
        if not connection.execute(begin_now).rowcount:
            host_rows.check_known(connection, [hostname])
            raise exceptions.Conflict(
                f'Host {hostname} is drained already: end that first'
            )
        if _disable(connection, hostname):
            order_rows.change_statuses(
                connection, _HOSTS.c.hostname == hostname
            )


def begin_announced(connection: sa.Connection, hostname: str) -> None:
    """Begin the drain of a locked host, as a part of its report."""
    _disable(connection, hostname)
    order_rows.change_statuses(
        connection, _HOSTS.c.hostname == hostname, drained_at=clock.now()
    )


def _disable(connection: sa.Connection, hostname: str) -> int:
    return connection.execute(
        sa.update(_DEVICES)
        .where(
            _DEVICES.c.hostname == hostname,
            _DEVICES.c.status == hardware.Status.ENABLED,
        )
        .values(
            status=hardware.Status.MAINTAINING,
            status_since=order_rows.STATUS_SINCE,
            is_drained=True,
            updated_at=schema.now(),
        )
    ).rowcount


@engine.retried
def end(hostname: str) -> None:
    """End the drain of a host, and enable what it has disabled.

    :raises NotFound: the host has never reported
    :raises Conflict: the host is not drained, and is not to be
    """
    with engine.writer() as connection:
        changed = connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname == hostname, _IS_ASKED_FOR)
            .values(
                drained_from=None,
                drained_at=None,
                drained_by=None,
                drain_reason=None,
                drained_until=None,
            )
        ).rowcount
        if not changed:
            host_rows.check_known(connection, [hostname])
            raise exceptions.Conflict(f'Host {hostname} is not drained')
        enabled = connection.execute(
            sa.update(_DEVICES)
            .where(_DEVICES.c.hostname == hostname, _DEVICES.c.is_drained)
            .values(
                status=hardware.Status.ENABLED,
                status_since=order_rows.STATUS_SINCE,
                is_drained=False,
                updated_at=schema.now(),
            )
        ).rowcount
        if enabled:
            # The next report is compared as a whole, so that an enabled device
            # goes away if the host no longer has it.
            order_rows.change_statuses(
                connection, _HOSTS.c.hostname == hostname, report_digest=''
            )


@engine.retried
def get_all(
    hostname: str | None = None, with_announced: bool = False
) -> list[DrainRow]:
    """All drained hosts, sorted by their names.

    :param hostname: the only host to look at
    :param with_announced: whether those that are to be drained are wanted too
    """
    devices = (
        sa.select(sa.func.count(_DEVICES.c.id))
        .where(_DEVICES.c.hostname == _HOSTS.c.hostname, _DEVICES.c.is_drained)
        .scalar_subquery()
    )
    query = (
        sa.select(
            _HOSTS.c.hostname,
            _HOSTS.c.drain_reason.label('reason'),
            _HOSTS.c.drained_from.label('start'),
            _HOSTS.c.drained_until.label('until'),
            _HOSTS.c.drained_at.label('requested_at'),
            _HOSTS.c.drained_by.label('requested_by'),
            IS_OVERDUE.label('is_overdue'),
            devices.label('devices'),
        )
        .where(_IS_ASKED_FOR if with_announced else _IS_DRAINED)
        .order_by(_HOSTS.c.hostname)
    )
    if hostname is not None:
        query = query.where(_HOSTS.c.hostname == hostname)
    with engine.reader() as connection:
        found = typed.rows(DrainRow, connection.execute(query))
        if hostname is not None and not found:
            host_rows.check_known(connection, [hostname])
    return [
        {
            **row,
            'reason': row['reason'] or '',
            'is_overdue': bool(row['is_overdue']),
        }
        for row in found
    ]


def get(hostname: str, with_announced: bool = False) -> DrainRow:
    """The drain of a host.

    :param with_announced: as for :func:`get_all`
    :raises NotFound: it is not drained, or has never reported
    """
    found = get_all(hostname, with_announced)
    if not found:
        raise exceptions.NotFound(f'Host {hostname} is not drained')
    return found[0]
