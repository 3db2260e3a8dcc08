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

"""Texts for faults of the database, chosen by what its driver says.

Clients of the API read them, so that they name no hosts, users or databases.
Only administrators read where the database is. The driver's own text goes to
the log.
"""

import re
from typing import NamedTuple

from oslo_db import exception as db_exc
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions

_SYNC = 'run "nova-accel-manage db sync"'


class _Kind(NamedTuple):
    """A fault in how the database is operated.

    :ivar mysql: error numbers of the server and of its clients
    :ivar sqlstates: SQLSTATEs of PostgreSQL
    :ivar text: matches the text of SQLite; and that of PostgreSQL while the
        connection is made, when there is no SQLSTATE
    """

    words: str
    mysql: frozenset[int]
    sqlstates: frozenset[str]
    text: re.Pattern[str]


def _kind(
    words: str, mysql: set[int], sqlstates: set[str], text: str
) -> _Kind:
    return _Kind(
        words,
        frozenset(mysql),
        frozenset(sqlstates),
        re.compile(text, re.IGNORECASE),
    )


_KINDS = (
    _kind(
        f'does not have the tables of this release: {_SYNC}',
        {1054, 1146},
        {'42P01', '42703'},
        'no such table|no such column|has no column named',
    ),
    _kind(
        'does not exist: create it, or correct [nova_accel_database] '
        'connection',
        {1049},
        {'3D000'},
        'database ".*" does not exist|unable to open database file',
    ),
    _kind(
        'refuses the user of [nova_accel_database] connection',
        {1044, 1045, 1142, 1143, 1227, 1698},
        {'28000', '28P01', '42501'},
        'authentication failed|role ".*" does not exist|no pg_hba.conf '
        'entry|permission denied|access denied',
    ),
    _kind(
        'is read-only',
        {1290, 1792, 1836},
        {'25006'},
        'attempt to write a readonly database',
    ),
    _kind(
        'has no space left',
        {1021, 1114},
        {'53100'},
        'database or disk is full|no space left on device',
    ),
    _kind(
        'has no connection left',
        {1040, 1203, 1226},
        {'53300'},
        'too many (clients|connections)|remaining connection slots',
    ),
    _kind(
        'took too long',
        {1969, 3024},
        {'57014'},
        'canceling statement due to statement timeout',
    ),
)

#: Faults of the database itself, not of the statement.
_OF_OPERATION = (
    db_exc.DBConnectionError,
    db_exc.CantStartEngineError,
    db_exc.DBNonExistentDatabase,
    db_exc.DBNonExistentTable,
    sa_exc.OperationalError,
    sa_exc.TimeoutError,
)

# oslo.db knows MySQL's lock timeout as a deadlock, but not these two.
_LOCK_TIMEOUT = re.compile(
    'database is locked|canceling statement due to lock timeout'
)


def is_lock_timeout(fault: Exception) -> bool:
    """Whether another transaction had a lock for too long."""
    return (
        isinstance(fault, sa_exc.OperationalError)
        and _LOCK_TIMEOUT.search(str(fault)) is not None
    )


def unavailable(
    fault: Exception, place: str = ''
) -> exceptions.ServiceUnavailable | None:
    """The fault to raise if the database cannot be used, otherwise None.

    :param fault: an exception of SQLAlchemy or oslo.db
    :param place: where the database is, for administrators alone
    """
    words = _words(fault)
    if words is None:
        return None
    public = f'the database of accelerators {words}'
    return exceptions.ServiceUnavailable(
        f'{public} ({place})' if place else public, public=public
    )


def _words(fault: Exception) -> str | None:
    if isinstance(fault, sa_exc.TimeoutError):
        return 'is too busy: no connection became free'
    raised = of_driver(fault)
    for kind in _KINDS:
        if _is(raised, kind):
            return kind.words
    if isinstance(fault, _OF_OPERATION):
        return 'does not answer'
    return None


def of_driver(fault: Exception) -> BaseException:
    """The exception that the driver has raised."""
    if isinstance(fault, db_exc.DBError) and fault.inner_exception is not None:
        fault = fault.inner_exception
    return getattr(fault, 'orig', None) or fault


def _is(raised: BaseException, kind: _Kind) -> bool:
    sqlstate = getattr(raised, 'pgcode', None)
    if sqlstate is not None:
        return sqlstate in kind.sqlstates
    number = raised.args[0] if raised.args else None
    if isinstance(number, int):
        return number in kind.mysql
    return kind.text.search(str(raised)) is not None
