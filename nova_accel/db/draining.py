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

#: Whether the announced end of a drain is over, by the database's clock.
IS_OVERDUE = sa.case(
    (sa.and_(_IS_DRAINED, _HOSTS.c.drained_until < clock.now()), True),
    else_=False,
)


class DrainRow(TypedDict):
    """A host that is drained.

    ``devices`` is how many devices are disabled for it.
    """

    hostname: str
    reason: str
    until: datetime.datetime | None
    requested_at: datetime.datetime
    requested_by: str | None
    is_overdue: bool
    devices: int


@engine.retried
def begin(
    hostname: str,
    reason: str,
    until: datetime.datetime | None,
    user_id: str | None,
) -> None:
    """Drain a host, from its next report on in Placement too.

    A host that is drained already gets the new reason and end. Its devices
    that somebody has enabled meanwhile are disabled again.

    :param until: the end to announce, None for none
    :raises NotFound: the host has never reported
    """
    with engine.writer() as connection:
        # This locks the host, so that no report comes in between.
        changed = connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname == hostname)
            .values(
                drained_at=sa.func.coalesce(_HOSTS.c.drained_at, clock.now()),
                drained_by=user_id,
                drain_reason=reason,
                drained_until=until,
            )
        ).rowcount
        if not changed:
            raise host_rows.not_found([hostname])
        disabled = connection.execute(
            sa.update(_DEVICES)
            .where(
                _DEVICES.c.hostname == hostname,
                _DEVICES.c.status == hardware.Status.ENABLED,
            )
            .values(
                status=hardware.Status.MAINTAINING,
                is_drained=True,
                updated_at=schema.now(),
            )
        ).rowcount
        if disabled:
            order_rows.change(connection, _HOSTS.c.hostname == hostname)


@engine.retried
def end(hostname: str) -> None:
    """End the drain of a host, and enable what it has disabled.

    :raises NotFound: the host has never reported
    :raises Conflict: the host is not drained
    """
    with engine.writer() as connection:
        changed = connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname == hostname, _IS_DRAINED)
            .values(
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
                is_drained=False,
                updated_at=schema.now(),
            )
        ).rowcount
        if enabled:
            # The next report is compared as a whole, so that an enabled device
            # goes away if the host no longer has it.
            order_rows.change(
                connection, _HOSTS.c.hostname == hostname, report_digest=''
            )


@engine.retried
def get_all(hostname: str | None = None) -> list[DrainRow]:
    """All drained hosts, sorted by their names.

    :param hostname: the only host to look at
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
            _HOSTS.c.drained_until.label('until'),
            _HOSTS.c.drained_at.label('requested_at'),
            _HOSTS.c.drained_by.label('requested_by'),
            IS_OVERDUE.label('is_overdue'),
            devices.label('devices'),
        )
        .where(_IS_DRAINED)
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


def get(hostname: str) -> DrainRow:
    """The drain of a host.

    :raises NotFound: it is not drained, or has never reported
    """
    found = get_all(hostname)
    if not found:
        raise exceptions.NotFound(f'Host {hostname} is not drained')
    return found[0]
