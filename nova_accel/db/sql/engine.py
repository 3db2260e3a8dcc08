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

"""Transactions on the companion database.

MySQL and PostgreSQL isolate them by READ COMMITTED, so that a transaction that
waited for another one sees its changes. SQLite has one writer at a time.

A transaction is begun again in three cases: it waited longer than
``lock_wait_s`` for another one, its connection was lost before the end, or a
Galera cluster refused its COMMIT because another node was first. This goes on
until ``deadline_s`` have passed (:mod:`nova_accel.db.sql.time_limits`).
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import functools
from typing import Any
from typing import ParamSpec
from typing import TypeVar

from oslo_db import api as db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.conf import database as database_conf
from nova_accel.db.sql import database_url
from nova_accel.db.sql import faults
from nova_accel.db.sql import shared_tls
from nova_accel.db.sql import time_limits

CONF = conf.CONF

LOG = logging.getLogger(__name__)

#: How often a transaction is begun again before its caller gets an error. If
#: many want the same few handles, one may lose each handle to another, and
#: meet some deadlocks besides.
RETRIES = 20

_FIRST_RETRY_S = 0.02
_LONGEST_RETRY_S = 0.5

#: The entry point of :class:`nova_accel.db.sql.pooling.Pooling`.
_POOLING = 'nova_accel'

_P = ParamSpec('_P')
_R = TypeVar('_R')


def check_configured() -> None:
    """Check that the service can start.

    :raises ConfigurationError: the connection is not set, or is no URL of a
        database that can be used; the fault's text has no part of the URL
    """
    url()


def url() -> sa.URL:
    """The URL of the database, as it is configured.

    :raises ConfigurationError: as :func:`check_configured`
    """
    text = CONF.nova_accel_database.connection
    option = '[nova_accel_database] connection'
    if not text:
        raise exceptions.ConfigurationError(
            f'{option} is not set: it names the database of accelerators'
        )
    try:
        found = database_url.parse(text, option)
        backend = found.get_backend_name()
        found.get_dialect().import_dbapi()
    except (sa_exc.ArgumentError, ImportError):
        # Not chained: the fault's text may have the password.
        raise exceptions.ConfigurationError(
            f'{option} is not the URL of a database whose driver is installed'
        ) from None
    if backend not in time_limits.BACKENDS:
        raise exceptions.ConfigurationError(
            f'{option} must be one of {", ".join(time_limits.BACKENDS)}'
        )
    if backend == 'mysql':
        # oslo.db's default is MySQL's three-byte utf8, which cannot hold all
        # characters of a description.
        return found.update_query_dict({'charset': 'utf8mb4', **found.query})
    return found


def place() -> str:
    """The server that the configuration names, empty for a file."""
    server = database_url.server(url())
    return f'[nova_accel_database] connection names {server}' if server else ''


@functools.cache
def manager() -> Any:
    """oslo.db's transaction manager, made at first use in a process.

    ``cache_clear`` makes the next use read the configuration again.
    """
    return _made(time_limits.of_api())


@functools.cache
def brief_manager() -> Any:
    """The manager of transactions that wait as long as nova-scheduler may.

    SQLite has none of its own: no one reads from it through a network.
    """
    if url().get_backend_name() == 'sqlite':
        return manager()
    return _made(time_limits.of_scheduler())


def _manager() -> Any:
    return brief_manager() if time_limits.is_brief() else manager()


def _made(limits_of: time_limits.Limits) -> Any:
    limited = time_limits.of_driver(url(), limits_of)
    context_manager = enginefacade.transaction_context()
    context_manager.configure(
        **{
            **time_limits.of_pool(limited, limits_of),
            **{
                option.name: CONF.nova_accel_database[option.name]
                for option in database_conf.DATABASE_OPTS
                if CONF.nova_accel_database[option.name] is not None
            },
            'sqlite_fk': True,
            # A thread that gives a connection back need not wait for others.
            'thread_checkin': False,
            'connection': limited.update_query_pairs(
                [('plugin', _POOLING)],
                append=True,
            ).render_as_string(hide_password=False),
        }
    )
    context_manager.append_on_engine_create(
        functools.partial(_prepare, limits_of)
    )
    return context_manager


def _prepare(limits_of: time_limits.Limits, engine: sa.Engine) -> None:
    # These come first, since the next listener may wait.
    time_limits.set_up(engine, limits_of)
    shared_tls.set_up(engine)

    @sa.event.listens_for(engine, 'connect')
    def set_up(connection: Any, record: Any) -> None:
        if engine.dialect.name == 'sqlite':
            connection.cursor().execute('PRAGMA journal_mode = WAL')
            return
        if engine.dialect.name == 'postgresql':
            # A statement that looks costly would be compiled first, which
            # takes a hundred times longer than to read what has changed.
            connection.cursor().execute('SET SESSION jit = off')
        connection.commit()
        engine.dialect.set_isolation_level(connection, 'READ COMMITTED')

    # oslo.db has tested the engine before we got it. That connection is in the
    # pool, and was not set up.
    engine.dispose()


def forget() -> None:
    """Close all connections; the next use reads the configuration again."""
    for made in (manager, brief_manager):
        if made.cache_info().currsize:
            made().dispose_pool()
        made.cache_clear()
    time_limits.forget()


@contextlib.contextmanager
def reader() -> Iterator[sa.Connection]:
    """A transaction that changes nothing.

    :raises RetryRequest: the connection was lost; :func:`retried` makes it
        ServiceUnavailable in the end
    :raises ServiceUnavailable: the database cannot be used
    """
    time_limits.check()
    with (
        _translated(),
        _manager().reader.get_engine().connect() as connection,
        _loss_translated(),
    ):
        yield connection


@contextlib.contextmanager
def writer() -> Iterator[sa.Connection]:
    """A transaction that any exception undoes as a whole.

    :raises RetryRequest: the connection was lost before COMMIT, so nothing is
        done; :func:`retried` makes it ServiceUnavailable in the end
    :raises ServiceUnavailable: the database cannot be used, or did not answer
        COMMIT, so that no one knows whether the changes are stored
    :raises InvalidRequest: a value does not fit its column
    """
    time_limits.check()
    with _translated(), _manager().writer.get_engine().begin() as connection:
        if connection.dialect.name == 'sqlite':
            # oslo.db begins a transaction for reading. If it reads first, it
            # cannot write any more once another one has written.
            connection.exec_driver_sql('ROLLBACK')
            connection.exec_driver_sql('BEGIN IMMEDIATE')
        with _loss_translated():
            yield connection


@contextlib.contextmanager
def _loss_translated() -> Iterator[None]:
    try:
        yield
    except db_exc.DBConnectionError as fault:
        raise db_exc.RetryRequest(
            faults.unavailable(fault, place()) or fault
        ) from fault


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (
        db_exc.DBError,
        db_exc.CantStartEngineError,
        sa_exc.SQLAlchemyError,
    ) as fault:
        if faults.is_lock_timeout(fault):
            raise
        unavailable = faults.unavailable(fault, place())
        if unavailable is not None:
            LOG.error('%s: %s', unavailable, faults.of_driver(fault))
            raise unavailable from fault
        # oslo.db has a class for MySQL's fault, but not for PostgreSQL's.
        refused = getattr(fault, 'inner_exception', None)
        if not isinstance(refused, sa_exc.DataError):
            raise
        LOG.warning('A value was refused: %s', refused.orig)
        raise exceptions.InvalidRequest(
            'a value is longer or larger than can be stored'
        ) from fault


def retried(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Begin the one transaction of a function again, where that may help.

    It may help if the database undid it in favour of another transaction, if
    the connection was lost before COMMIT, or if the function raises
    ``oslo_db.exception.RetryRequest(fault)``. If it does not help, the caller
    gets ``fault``.

    The whole call has a deadline, see
    :func:`nova_accel.db.sql.time_limits.deadline`.

    :raises ServiceUnavailable: other transactions won every time, or the
        database cannot be used
    """
    attempt = db_api.wrap_db_retry(
        max_retries=RETRIES,
        retry_on_deadlock=True,
        jitter=True,
        retry_interval=_FIRST_RETRY_S,
        max_retry_interval=_LONGEST_RETRY_S,
        exception_checker=faults.is_lock_timeout,
    )(function)

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            with time_limits.deadline():
                result: _R = attempt(*args, **kwargs)
            return result
        except (db_exc.DBDeadlock, sa_exc.OperationalError) as fault:
            raise exceptions.ServiceUnavailable.for_all(
                'the database of accelerators is too busy'
            ) from fault

    return wrapper


@contextlib.contextmanager
def raced(fault: Exception) -> Iterator[None]:
    """Begin the transaction again if another one inserted the row first.

    The next try then sees that row. Only for :func:`retried` functions.

    :param fault: the fault for the caller, if no try succeeds
    """
    try:
        yield
    except db_exc.DBDuplicateEntry as error:
        raise db_exc.RetryRequest(fault) from error
