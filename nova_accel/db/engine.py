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

READ COMMITTED on the servers, so that a transaction that waited for another
one sees what that did; SQLite has one writer at a time. Whoever waits longer
than :data:`LOCK_WAIT_S` for another transaction starts again, and so does
whoever loses the connection before the end, or whose COMMIT a Galera cluster
refuses because another of its nodes was first.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import functools
import re
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

CONF = conf.CONF

LOG = logging.getLogger(__name__)

#: How long one statement waits for the lock of another transaction.
LOCK_WAIT_S = 5

#: How often a transaction is begun again before its caller gets an error. Of
#: many that want the same few handles, one may lose each of them to another,
#: and some deadlocks besides.
RETRIES = 20

_FIRST_RETRY_S = 0.02
_LONGEST_RETRY_S = 0.5

# oslo.db knows MySQL's lock timeout as a deadlock, but not these two.
_LOCK_TIMEOUT = re.compile(
    'database is locked|canceling statement due to lock timeout')

#: Faults of the database's operation, not of what it was asked.
_UNREACHED = (
    db_exc.DBConnectionError, db_exc.CantStartEngineError,
    db_exc.DBNonExistentDatabase, sa_exc.OperationalError)

_SET_LOCK_WAIT = {
    'sqlite': 'PRAGMA busy_timeout = {}000',
    'mysql': 'SET SESSION innodb_lock_wait_timeout = {}',
    'postgresql': "SET SESSION lock_timeout = '{}s'",
}

#: The entry point of :class:`nova_accel.db.pooling.Pooling`.
_POOLING = 'nova_accel'

_P = ParamSpec('_P')
_R = TypeVar('_R')


def check_configured() -> None:
    """Whether the service can start.

    :raises ConfigurationError: the connection is not set, or is no URL of a
        database that can be used; its text has no part of the URL
    """
    _url()


def _url() -> sa.URL:
    text = CONF.nova_accel_database.connection
    option = '[nova_accel_database] connection'
    if not text:
        raise exceptions.ConfigurationError(
            f'{option} is not set: it names the database of accelerators')
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
        url.get_dialect().import_dbapi()
    except (sa_exc.ArgumentError, ImportError):
        # Not chained: the fault's text may have the password.
        raise exceptions.ConfigurationError(
            f'{option} is not the URL of a database whose driver is '
            'installed') from None
    if backend not in _SET_LOCK_WAIT:
        raise exceptions.ConfigurationError(
            f'{option} must be one of {", ".join(_SET_LOCK_WAIT)}')
    if backend == 'mysql':
        # oslo.db would take MySQL's three-byte utf8, which cannot hold all
        # that a description may have.
        return url.update_query_dict({'charset': 'utf8mb4', **url.query})
    return url


@functools.cache
def manager() -> Any:
    """oslo.db's transaction manager, made at first use in a process.

    ``cache_clear`` makes the next use read the configuration again.
    """
    url = _url()
    context_manager = enginefacade.transaction_context()
    context_manager.configure(**{
        **CONF.nova_accel_database, 'sqlite_fk': True,
        # Whoever gives a connection back need not wait for other threads.
        'thread_checkin': False,
        'connection': url.update_query_pairs(
            [('plugin', _POOLING)], append=True,
        ).render_as_string(hide_password=False)})
    context_manager.append_on_engine_create(_prepare)
    return context_manager


def _prepare(engine: sa.Engine) -> None:

    @sa.event.listens_for(engine, 'connect')
    def set_up(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(
            _SET_LOCK_WAIT[engine.dialect.name].format(LOCK_WAIT_S))
        if engine.dialect.name == 'sqlite':
            cursor.execute('PRAGMA journal_mode = WAL')
            return
        connection.commit()
        engine.dialect.set_isolation_level(connection, 'READ COMMITTED')

    # oslo.db has tried the engine before it was given to us: that
    # connection is in the pool and was not set up.
    engine.dispose()


@contextlib.contextmanager
def reader() -> Iterator[sa.Connection]:
    """A transaction that changes nothing.

    :raises RetryRequest: the connection was lost; for :func:`retried`,
        ServiceUnavailable in the end
    :raises ServiceUnavailable: the database does not answer
    """
    with (_translated(), manager().reader.get_engine().connect() as connection,
          _loss_translated()):
        yield connection


@contextlib.contextmanager
def writer() -> Iterator[sa.Connection]:
    """A transaction that is undone as a whole by any exception.

    :raises RetryRequest: the connection was lost before COMMIT, so nothing
        is done; for :func:`retried`, ServiceUnavailable in the end
    :raises ServiceUnavailable: the database does not answer, or did not
        answer to COMMIT, and nobody knows what became of that
    :raises InvalidRequest: a value does not fit its column
    """
    with _translated(), manager().writer.get_engine().begin() as connection:
        if connection.dialect.name == 'sqlite':
            # oslo.db begins it as a reader's; one that reads first cannot
            # become a writer's once another has written.
            connection.exec_driver_sql('ROLLBACK')
            connection.exec_driver_sql('BEGIN IMMEDIATE')
        with _loss_translated():
            yield connection


@contextlib.contextmanager
def _loss_translated() -> Iterator[None]:
    try:
        yield
    except db_exc.DBConnectionError as fault:
        raise db_exc.RetryRequest(_unavailable(fault)) from fault


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _UNREACHED as fault:
        if _is_lock_timeout(fault):
            raise
        raise _unavailable(fault) from fault
    except db_exc.DBError as fault:
        # oslo.db has a class for what MySQL says, but not PostgreSQL.
        if not isinstance(fault.inner_exception, sa_exc.DataError):
            raise
        LOG.warning('A value was refused: %s', fault.inner_exception.orig)
        raise exceptions.InvalidRequest(
            'a value is longer or larger than can be stored') from fault


def _unavailable(fault: Exception) -> exceptions.ServiceUnavailable:
    LOG.error('The database of accelerators does not answer: %s', fault)
    return exceptions.ServiceUnavailable(
        'the database of accelerators does not answer')


def retried(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function with one transaction begin it again, a few times.

    It is, when the database undid it in favour of another transaction, when
    the connection was lost before its COMMIT, and when it raises
    ``oslo_db.exception.RetryRequest(fault)``; ``fault`` is what the caller
    gets in the end.

    :raises ServiceUnavailable: other transactions won every time, or the
        database does not answer
    """
    attempt = db_api.wrap_db_retry(
        max_retries=RETRIES, retry_on_deadlock=True, jitter=True,
        retry_interval=_FIRST_RETRY_S, max_retry_interval=_LONGEST_RETRY_S,
        exception_checker=_is_lock_timeout)(function)

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            result: _R = attempt(*args, **kwargs)
            return result
        except (db_exc.DBDeadlock, sa_exc.OperationalError) as fault:
            raise exceptions.ServiceUnavailable(
                'the database of accelerators is too busy') from fault
    return wrapper


@contextlib.contextmanager
def raced(fault: Exception) -> Iterator[None]:
    """Have the transaction begin again where a row of another's came first.

    Then it is seen. To be used in a :func:`retried` function.

    :param fault: what its caller gets in the end
    """
    try:
        yield
    except db_exc.DBDuplicateEntry as error:
        raise db_exc.RetryRequest(fault) from error


def _is_lock_timeout(fault: Exception) -> bool:
    return (isinstance(fault, sa_exc.OperationalError)
            and _LOCK_TIMEOUT.search(str(fault)) is not None)
