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

"""How long the database may hold a thread.

``deadline_s`` is for a whole call, however often its transaction is begun
again. It is checked here before each statement. Within a statement, the server
ends a wait for a lock that takes too long. The driver ends a read or write
that takes too long. libpq waits for ever for a server that is frozen, so a
thread cuts a connection of PostgreSQL's at the deadline (``db/watchdog.py``).
"""

from collections.abc import Iterator
import contextlib
import contextvars
import time
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import watchdog

CONF = conf.CONF

_SET_UP = {
    'sqlite': 'PRAGMA busy_timeout = {lock_wait_s}000',
    'mysql': (
        'SET SESSION innodb_lock_wait_timeout = {lock_wait_s}, '
        'lock_wait_timeout = {lock_wait_s}'
    ),
    'postgresql': (
        "SET SESSION lock_timeout = '{lock_wait_s}s'; "
        "SET SESSION statement_timeout = '{answer_timeout_s}s'"
    ),
}

#: The databases that can be used.
BACKENDS = tuple(_SET_UP)

_OF_DRIVERS = {
    'pymysql': ('connect_timeout', 'read_timeout', 'write_timeout'),
    'mysqldb': ('connect_timeout', 'read_timeout', 'write_timeout'),
    'psycopg2': ('connect_timeout',),
    'psycopg': ('connect_timeout',),
}

_WATCH = 'nova_accel_watch'

# When the call must be over, by time.monotonic().
_DEADLINE: contextvars.ContextVar[float | None] = contextvars.ContextVar(
    'deadline', default=None
)


class DeadlinePassed(exceptions.ServiceUnavailable):
    """A call has taken as long as it may."""

    def __init__(self) -> None:
        text = (
            'the database of accelerators is too busy: nothing was done '
            f'within {_options().deadline_s} s'
        )
        super().__init__(text, public=text)


def _options() -> Any:
    return CONF.nova_accel_database


@contextlib.contextmanager
def deadline() -> Iterator[None]:
    """Set the deadline of the body, unless one is set already."""
    if _DEADLINE.get() is not None:
        yield
        return
    token = _DEADLINE.set(time.monotonic() + _options().deadline_s)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check() -> None:
    """:raises DeadlinePassed: there is no time left"""
    until = _DEADLINE.get()
    if until is not None and time.monotonic() > until:
        raise DeadlinePassed


def of_driver(url: sa.URL) -> sa.URL:
    """The URL with its driver's own timeouts; options that it has are kept."""
    names = _OF_DRIVERS.get(url.get_driver_name(), ())
    return url.update_query_dict(
        {
            **{name: str(_options().answer_timeout_s) for name in names},
            **url.query,
        }
    )


def of_pool(url: sa.URL) -> dict[str, int]:
    """The limits of an engine's pool; SQLite has none."""
    return (
        {}
        if url.get_backend_name() == 'sqlite'
        else {'pool_timeout': _options().answer_timeout_s}
    )


def set_up(engine: sa.Engine) -> None:
    """Apply the limits to the engine's connections."""
    statement = _SET_UP[engine.dialect.name].format(
        lock_wait_s=_options().lock_wait_s,
        answer_timeout_s=_options().answer_timeout_s,
    )

    @sa.event.listens_for(engine, 'connect')
    def limit(connection: Any, record: Any) -> None:
        connection.cursor().execute(statement)

    @sa.event.listens_for(engine, 'before_cursor_execute')
    def check_deadline(*_arguments: Any) -> None:
        check()

    if engine.dialect.name == 'postgresql':
        _watch(engine)


def _watch(engine: sa.Engine) -> None:

    # Before the other listeners, as the pool may test the connection there.
    @sa.event.listens_for(engine, 'checkout', insert=True)
    def begin(connection: Any, record: Any, _proxy: Any) -> None:
        until = _DEADLINE.get()
        if until is not None and not connection.closed:
            record.info[_WATCH] = watchdog.watch(connection.fileno(), until)

    @sa.event.listens_for(engine, 'checkin')
    @sa.event.listens_for(engine, 'close')
    def end(_connection: Any, record: Any) -> None:
        watched = record.info.pop(_WATCH, None)
        if watched is not None:
            watchdog.release(watched)
