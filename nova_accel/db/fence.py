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

It outlives a release by a day, so that a request that was under way for
longer than its caller waited cannot take anything. Everything here is a part
of its caller's transaction.
"""

from collections.abc import Mapping
import datetime
import enum
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import engine
from nova_accel.db import schema

_TABLE = schema.BINDINGS

#: How long a late request is recognized as such after the release.
KEPT = datetime.timedelta(days=1)

#: Instance uuid, hostname (Nova's nodename), role.
Key = tuple[str, str, str]


class Admitted(enum.Enum):
    """What an attempt is to its binding."""

    FIRST = 'first'
    NEWER = 'newer'
    #: Its answer was lost, or never waited for.
    REPEATED = 'repeated'


def where(table: sa.Table, key: Key) -> tuple[sa.ColumnElement[bool], ...]:
    """The rows of a binding in a table that has them."""
    return tuple(table.c[name] == value for name, value in zip(
        ('instance_uuid', 'hostname', 'role'), key, strict=True))


def admit(connection: sa.Connection, key: Key, attempt: int) -> Admitted:
    """Let an attempt take something, and no older one any more.

    :raises StaleAttempt: a newer one is known, or this one is released
    """
    fence = _lock(connection, key)
    if fence is None:
        _insert(connection, key, attempt, None)
        return Admitted.FIRST
    if attempt > fence['attempt']:
        _update(connection, key, attempt, None)
        return Admitted.NEWER
    if attempt < fence['attempt'] or fence['released_at'] is not None:
        raise _stale(key, attempt, fence)
    return Admitted.REPEATED


def close(connection: sa.Connection, key: Key, attempt: int) -> None:
    """Let neither this attempt nor an older one take anything.

    :raises StaleAttempt: a newer one is known
    """
    fence = _lock(connection, key)
    if fence is None:
        _insert(connection, key, attempt, schema.now())
    elif attempt < fence['attempt']:
        raise _stale(key, attempt, fence)
    else:
        _update(connection, key, attempt, schema.now())


def attempts(connection: sa.Connection,
             hostname: str) -> dict[tuple[str, str], int]:
    """(Instance uuid, role) -> the newest attempt, of what may be held."""
    query = sa.select(
        _TABLE.c.instance_uuid, _TABLE.c.role, _TABLE.c.attempt,
    ).where(_TABLE.c.hostname == hostname, _TABLE.c.released_at.is_(None))
    return {(row.instance_uuid, row.role): row.attempt
            for row in connection.execute(query)}


def forget_old(connection: sa.Connection, hostname: str) -> None:
    """Forget the host's fences of what was released long ago."""
    connection.execute(sa.delete(_TABLE).where(
        _TABLE.c.hostname == hostname,
        _TABLE.c.released_at < schema.now() - KEPT))


def _lock(connection: sa.Connection, key: Key) -> dict[str, Any] | None:
    fence = connection.execute(
        sa.select(_TABLE.c.attempt, _TABLE.c.released_at)
        .where(*where(_TABLE, key)).with_for_update(),
    ).mappings().one_or_none()
    return None if fence is None else dict(fence)


def _insert(connection: sa.Connection, key: Key, attempt: int,
            released_at: datetime.datetime | None) -> None:
    instance_uuid, hostname, role = key
    with engine.raced(exceptions.StaleAttempt(
            f'instance {instance_uuid} on host {hostname} ({role}) is asked '
            'for by others at the same time')):
        connection.execute(sa.insert(_TABLE).values(
            instance_uuid=instance_uuid, hostname=hostname, role=role,
            attempt=attempt, released_at=released_at))


def _update(connection: sa.Connection, key: Key, attempt: int,
            released_at: datetime.datetime | None) -> None:
    connection.execute(
        sa.update(_TABLE).where(*where(_TABLE, key))
        .values(attempt=attempt, released_at=released_at))


def _stale(key: Key, attempt: int,
           fence: Mapping[str, Any]) -> exceptions.StaleAttempt:
    instance_uuid, hostname, role = key
    is_released = '' if fence['released_at'] is None else ', released,'
    return exceptions.StaleAttempt(
        f'attempt {attempt} for instance {instance_uuid} on host {hostname} '
        f'({role}) comes after attempt {fence["attempt"]}{is_released} is '
        'known')
