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

"""The rows of hosts, and which of them are silent."""

from collections.abc import Collection
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import period_rows
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_FINDINGS = schema.FINDINGS

#: Whether the announced beginning of a drain has come, and it has not begun.
IS_DUE = sa.case(
    (
        sa.and_(
            _HOSTS.c.drained_at.is_(None), _HOSTS.c.drained_from <= clock.now()
        ),
        True,
    ),
    else_=False,
)


#: Whether Placement counts some device as before it was disabled or enabled.
#: SQLite would not look into the index for "is not null".
IS_UNPUBLISHED = _HOSTS.c.unpublished > 0

#: Whether Placement counts a device of the host by the device's status, as far
#: as the host knows.
IS_PUBLISHED = sa.case(
    (_DEVICES.c.status_since <= _HOSTS.c.orders_published, True), else_=False
)

#: ``hosts.found_silent`` of a host of which owners are told that it is silent.
TOLD_SILENT = 2


class HostState(TypedDict):
    """Whether a host reports."""

    hostname: str
    is_silent: bool


def silent_node(
    connection: sa.Connection, hostname: str, silence_s: int
) -> str:
    """The uuid of a silent host's compute node.

    :raises NotFound: there is no such host
    :raises Conflict: the host still reports
    """
    found = connection.execute(
        sa.select(
            _HOSTS.c.node_uuid, is_silent(silence_s).label('is_silent')
        ).where(_HOSTS.c.hostname == hostname)
    ).one_or_none()
    if found is None:
        raise not_found([hostname])
    if not found.is_silent:
        raise exceptions.Conflict(
            f'host {hostname} reports its devices: stop its nova-compute '
            f'and wait for {silence_s} s'
        )
    node_uuid: str = found.node_uuid
    return node_uuid


def delete(connection: sa.Connection, hostname: str) -> dict[str, int]:
    """Delete a locked host with all that it has.

    :returns: table name -> how many rows were deleted
    """
    period_rows.end_of_host(connection, hostname)
    arqs, fences = schema.ARQS, schema.BINDINGS
    devices = sa.select(_DEVICES.c.uuid).where(_DEVICES.c.hostname == hostname)
    deployables = sa.select(_DEPLOYABLES.c.uuid).where(
        _DEPLOYABLES.c.device_uuid.in_(devices)
    )
    return {
        table.name: connection.execute(sa.delete(table).where(where)).rowcount
        for table, where in (
            (_HANDLES, _HANDLES.c.deployable_uuid.in_(deployables)),
            (arqs, arqs.c.hostname == hostname),
            (_DEPLOYABLES, _DEPLOYABLES.c.device_uuid.in_(devices)),
            (_DEVICES, _DEVICES.c.hostname == hostname),
            (fences, fences.c.hostname == hostname),
            (_FINDINGS, _FINDINGS.c.hostname == hostname),
            (_HOSTS, _HOSTS.c.hostname == hostname),
        )
    }


def lock(connection: sa.Connection, hostname: str) -> None:
    """Lock a host's row, which each report updates first.

    So no report comes in between. There may be no such host.
    """
    connection.execute(
        sa.select(_HOSTS.c.id)
        .where(_HOSTS.c.hostname == hostname)
        .with_for_update()
    )


def is_silent(
    silence_s: int | sa.BindParameter[int],
) -> sa.ColumnElement[bool]:
    """Whether the last report of a host is older than this many seconds.

    In an outer join, a host without a row is silent, too.
    """
    return sa.or_(
        _HOSTS.c.reported_at.is_(None),
        _HOSTS.c.reported_at < clock.ago(silence_s),
    )


def check_known(connection: sa.Connection, hostnames: Collection[str]) -> None:
    """:raises NotFound: names those that have never reported"""
    known = connection.scalars(
        sa.select(_HOSTS.c.hostname).where(
            _HOSTS.c.hostname.in_(list(hostnames))
        )
    )
    unknown = sorted(set(hostnames).difference(known))
    if unknown:
        raise not_found(unknown)


def not_found(hostnames: Collection[str]) -> exceptions.NotFound:
    """The fault that names hosts that have never reported."""
    return exceptions.NotFound(
        '; '.join(
            f'Host {hostname} not found: it has never reported its devices'
            for hostname in hostnames
        ),
        public=(
            'the host that was chosen has no accelerators: try again, or '
            'ask an administrator'
        ),
    )
