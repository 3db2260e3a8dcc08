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

"""A lease of what only one process of the API does at a time."""

from collections.abc import Iterator
import contextlib
import datetime

from oslo_log import log as logging
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

LOG = logging.getLogger(__name__)

_TABLE = schema.LEASES


@engine.retried
def take(name: str, interval_s: int) -> bool:
    """Whether the caller gets the lease, which no one else has meanwhile.

    :param interval_s: seconds from one lease to the next
    """
    with engine.writer() as connection:
        return _take(connection, name, interval_s)


@contextlib.contextmanager
def alone(name: str, longest_s: int, fault: Exception) -> Iterator[None]:
    """Have the lease until the body ends, and let others have it then.

    If the database is away then, or this process is killed, the lease ends
    by itself.

    :param longest_s: the seconds after which it does; the body has to be
        shorter
    :param fault: is raised if another process has the lease
    """
    taken_at = _hold(name, longest_s)
    if taken_at is None:
        raise fault
    try:
        yield
    finally:
        try:
            _end(name, taken_at)
        except exceptions.ServiceUnavailable as error:
            LOG.warning(
                'The lease of %s ends %s s after its beginning only: %s',
                name,
                longest_s,
                error,
            )


def is_held(
    name: sa.ColumnElement[str], longest_s: sa.BindParameter[int]
) -> sa.ColumnElement[bool]:
    """Whether some process has a lease, for statements about other things.

    :param longest_s: the seconds after which it ends by itself
    """
    return sa.exists().where(
        _TABLE.c.name == name,
        _TABLE.c.taken_at > clock.ago(longest_s),
        _TABLE.c.taken_at <= clock.now(),
    )


@engine.retried
def _hold(name: str, longest_s: int) -> datetime.datetime | None:
    """The time since when the caller has the lease, None if another has it."""
    with engine.writer() as connection:
        if not _take(connection, name, longest_s):
            return None
        taken_at: datetime.datetime = connection.execute(
            sa.select(_TABLE.c.taken_at).where(_TABLE.c.name == name)
        ).scalar_one()
        return taken_at


@engine.retried
def _end(name: str, taken_at: datetime.datetime) -> None:
    """End the lease that began then; that of another process goes on."""
    with engine.writer() as connection:
        connection.execute(
            sa.delete(_TABLE).where(
                _TABLE.c.name == name, _TABLE.c.taken_at == taken_at
            )
        )


def _take(connection: sa.Connection, name: str, interval_s: int) -> bool:
    taken = connection.execute(
        sa.update(_TABLE)
        .where(
            _TABLE.c.name == name,
            sa.or_(
                _TABLE.c.taken_at <= clock.ago(interval_s),
                # The database's clock was set back.
                _TABLE.c.taken_at > clock.now(),
            ),
        )
        .values(taken_at=clock.now())
    ).rowcount
    if taken:
        return True
    if connection.scalar(
        sa.select(sa.func.count()).where(_TABLE.c.name == name)
    ):
        return False
    with engine.raced(
        exceptions.Conflict(f'the first lease of {name} is being taken')
    ):
        connection.execute(
            sa.insert(_TABLE).values(name=name, taken_at=clock.now())
        )
    return True
