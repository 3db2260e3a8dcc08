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

"""The fence of a binding, which knows the newest attempt at it.

It outlives a release by a day. A request that arrives after its caller has
stopped waiting can take nothing then. Everything here is a part of its
caller's transaction.
"""

import dataclasses
import enum
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import attempt_number

_TABLE = schema.BINDINGS

#: How many seconds after a release a late request is still recognized.
KEPT_S = 24 * 60 * 60

#: Instance uuid, hostname (Nova's nodename), role.
Key = tuple[str, str, str]


class Admitted(enum.Enum):
    """How an admitted attempt compares with those that are known."""

    FIRST = 'first'
    NEWER = 'newer'
    #: Its answer was lost, or its caller stopped waiting.
    REPEATED = 'repeated'


def where(table: sa.Table, key: Key) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the rows of a binding in a table."""
    return tuple(
        table.c[name] == value
        for name, value in zip(
            ('instance_uuid', 'hostname', 'role'), key, strict=True
        )
    )


def admit(connection: sa.Connection, key: Key, attempt: int) -> Admitted:
    """Admit an attempt, and from now on no older one.

    :raises StaleAttempt: a newer one is known, or this one is released
    :raises FarAttempt: no host can have counted so far
    """
    known = _lock(connection, key, attempt)
    if known.attempt is None:
        _insert(connection, key, attempt, is_released=False)
        return Admitted.FIRST
    if attempt > known.attempt:
        _update(connection, key, attempt, is_released=False)
        return Admitted.NEWER
    if attempt < known.attempt or known.is_released:
        raise stale(key, attempt, known)
    return Admitted.REPEATED


def close(connection: sa.Connection, key: Key, attempt: int) -> None:
    """From now on admit neither this attempt nor an older one.

    :raises StaleAttempt: a newer one is known
    :raises FarAttempt: no host can have counted so far
    """
    known = _lock(connection, key, attempt)
    if known.attempt is None:
        _insert(connection, key, attempt, is_released=True)
    elif attempt < known.attempt:
        raise stale(key, attempt, known)
    else:
        _update(connection, key, attempt, is_released=True)


def taken(
    connection: sa.Connection, key: Key, attempt: int
) -> exceptions.StaleAttempt:
    """The fault for an attempt whose number another request has used.

    This happens when a host loses its journal and counts from the beginning.
    """
    return stale(key, attempt, _lock(connection, key, attempt))


def attempts(
    connection: sa.Connection, hostname: str
) -> dict[tuple[str, str], int]:
    """(Instance uuid, role) -> the newest attempt, if it is not released."""
    query = sa.select(
        _TABLE.c.instance_uuid,
        _TABLE.c.role,
        _TABLE.c.attempt,
    ).where(_TABLE.c.hostname == hostname, _TABLE.c.released_at.is_(None))
    return {
        (row.instance_uuid, row.role): row.attempt
        for row in connection.execute(query)
    }


def forget_old(connection: sa.Connection, hostname: str) -> None:
    """Forget the host's fences of what was released long ago."""
    connection.execute(
        sa.delete(_TABLE).where(
            _TABLE.c.hostname == hostname,
            _TABLE.c.released_at < clock.ago(KEPT_S),
        )
    )


@dataclasses.dataclass(frozen=True)
class KnownBinding:
    """The known attempts at a binding, and for its instance on the host.

    ``attempt`` is the newest at this role, None if there was none;
    ``newest`` is that of all roles, 0 if there was none.
    """

    attempt: int | None
    is_released: bool
    newest: int


def stale(
    key: Key, attempt: int, known: KnownBinding
) -> exceptions.StaleAttempt:
    """The fault for an attempt that must not take anything."""
    instance_uuid, hostname, role = key
    is_released = ' and released' if known.is_released else ''
    return exceptions.StaleAttempt(
        f'attempt {attempt} for instance {instance_uuid} on host {hostname} '
        f'({role}) is too late: attempt {known.attempt} is known'
        f'{is_released}',
        known.newest,
    )


def _lock(connection: sa.Connection, key: Key, attempt: int) -> KnownBinding:
    """:raises FarAttempt: no host can have counted so far"""
    instance_uuid, hostname, role = key
    rows = {
        row.role: row
        for row in connection.execute(
            sa.select(_TABLE.c.role, _TABLE.c.attempt, _TABLE.c.released_at)
            .where(
                _TABLE.c.instance_uuid == instance_uuid,
                _TABLE.c.hostname == hostname,
            )
            .order_by(_TABLE.c.role)
            .with_for_update()
        )
    }
    newest = max((row.attempt for row in rows.values()), default=0)
    if not attempt_number.is_in_reach(attempt, newest):
        raise exceptions.FarAttempt(
            f'attempt {attempt} for instance {instance_uuid} on host '
            f'{hostname} ({role}) is too far after {newest}, the newest that '
            'is known',
            newest,
        )
    own = rows.get(role)
    if own is None:
        return KnownBinding(None, False, newest)
    return KnownBinding(own.attempt, own.released_at is not None, newest)


def _insert(
    connection: sa.Connection, key: Key, attempt: int, is_released: bool
) -> None:
    instance_uuid, hostname, role = key
    with engine.raced(
        exceptions.StaleAttempt(
            f'instance {instance_uuid} on host {hostname} ({role}) is asked '
            'for by others at the same time'
        )
    ):
        connection.execute(
            sa.insert(_TABLE).values(
                instance_uuid=instance_uuid,
                hostname=hostname,
                role=role,
                attempt=attempt,
                released_at=_released_at(is_released),
            )
        )


def _update(
    connection: sa.Connection, key: Key, attempt: int, is_released: bool
) -> None:
    connection.execute(
        sa.update(_TABLE)
        .where(*where(_TABLE, key))
        .values(attempt=attempt, released_at=_released_at(is_released))
    )


def _released_at(is_released: bool) -> sa.ColumnElement[Any] | None:
    return clock.now() if is_released else None
