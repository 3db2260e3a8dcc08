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
thread cuts a connection of PostgreSQL's at the deadline
(``db/sql/watchdog.py``).

nova-scheduler decides for everybody, one request after the other. So it waits
less than the API, see :func:`brief`.
"""

import contextlib
import contextvars
import functools
import time
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db.sql import watchdog

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


class Limits(NamedTuple):
    """The seconds that a call, an answer and another's lock may take."""

    deadline_s: int
    answer_timeout_s: int
    lock_wait_s: int


class _Call(NamedTuple):
    """A call, and when it must be over, by ``time.monotonic()``."""

    limits: Limits
    until: float
    is_brief: bool


_CALL: contextvars.ContextVar[_Call | None] = contextvars.ContextVar(
    'call', default=None
)


class DeadlinePassed(exceptions.ServiceUnavailable):
    """A call has taken as long as it may."""

    def __init__(self, deadline_s: int) -> None:
        text = (
            'the database of accelerators is too busy: nothing was done '
            f'within {deadline_s} s'
        )
        super().__init__(text, public=text)


@functools.cache
def of_api() -> Limits:
    options = CONF.nova_accel_database
    return Limits(
        options.deadline_s, options.answer_timeout_s, options.lock_wait_s
    )


@functools.cache
def of_scheduler() -> Limits:
    options = CONF.nova_accel_database
    return Limits(
        options.scheduler_deadline_s,
        options.scheduler_answer_timeout_s,
        min(options.scheduler_answer_timeout_s, options.lock_wait_s),
    )


def forget() -> None:
    """Read the configuration again, when limits are needed next."""
    of_api.cache_clear()
    of_scheduler.cache_clear()


def deadline() -> contextlib.AbstractContextManager[None]:
    """Set the deadline of the body, unless one is set already."""
    if _CALL.get() is not None:
        return contextlib.nullcontext()
    return _Deadline(of_api(), is_brief=False)


def brief() -> contextlib.AbstractContextManager[None]:
    """Let the body wait as long as nova-scheduler may, and no longer.

    Its transactions have connections of their own, whose drivers wait no
    longer either.
    """
    return _Deadline(of_scheduler(), is_brief=True)


class _Deadline(contextlib.AbstractContextManager[None]):
    """Sets the deadline of the body."""

    _token: contextvars.Token[_Call | None]

    def __init__(self, limits: Limits, is_brief: bool) -> None:
        self._limits = limits
        self._is_brief = is_brief

    def __enter__(self) -> None:
        until = time.monotonic() + self._limits.deadline_s
        self._token = _CALL.set(_Call(self._limits, until, self._is_brief))

    def __exit__(self, *_fault: object) -> None:
        _CALL.reset(self._token)


def is_brief() -> bool:
    """Whether the code runs in the body of :func:`brief`."""
    call = _CALL.get()
    return call is not None and call.is_brief


def taken_ms() -> int:
    """How long the present call has taken, 0 outside of calls."""
    call = _CALL.get()
    if call is None:
        return 0
    began = call.until - call.limits.deadline_s
    return max(0, round(1000 * (time.monotonic() - began)))


def check() -> None:
    """:raises DeadlinePassed: there is no time left"""
    call = _CALL.get()
    if call is not None and time.monotonic() > call.until:
        raise DeadlinePassed(call.limits.deadline_s)


def of_driver(url: sa.URL, limits: Limits) -> sa.URL:
    """The URL with its driver's own timeouts; options that it has are kept."""
    names = _OF_DRIVERS.get(url.get_driver_name(), ())
    return url.update_query_dict(
        {
            **{name: str(limits.answer_timeout_s) for name in names},
            **url.query,
        }
    )


def of_pool(url: sa.URL, limits: Limits) -> dict[str, int]:
    """The limits of an engine's pool; SQLite has none."""
    return (
        {}
        if url.get_backend_name() == 'sqlite'
        else {'pool_timeout': limits.answer_timeout_s}
    )


def set_up(engine: sa.Engine, limits: Limits) -> None:
    """Apply the limits to the engine's connections."""
    statement = _SET_UP[engine.dialect.name].format(**limits._asdict())

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
        call = _CALL.get()
        if call is not None and not connection.closed:
            record.info[_WATCH] = watchdog.watch(
                connection.fileno(), call.until
            )

    @sa.event.listens_for(engine, 'checkin')
    @sa.event.listens_for(engine, 'close')
    def end(_connection: Any, record: Any) -> None:
        watched = record.info.pop(_WATCH, None)
        if watched is not None:
            watchdog.release(watched)
