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

"""The transaction of ``nova-accel-manage db sync``, of which only one runs.

Deployment tools run the command on each controller at the same time. The
transaction has a connection of its own, without the limits of the others
(:mod:`nova_accel.db.sql.time_limits`), as a step on large tables takes long.
"""

from collections.abc import Iterator
import contextlib
import hashlib

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.sql import faults
from nova_accel.db.sql import time_limits

#: How many seconds to wait for another one to end.
WAIT_S = 60


@contextlib.contextmanager
def alone(url: sa.URL) -> Iterator[sa.Connection]:
    """The transaction; MySQL commits steps of it before its end.

    :raises ServiceUnavailable: another did not end in time
    :raises SQLAlchemyError: the database cannot be used
    """
    backend = url.get_backend_name()
    _check_answers(url)
    own = sa.create_engine(
        url,
        poolclass=sa.NullPool,
        connect_args=(
            # The driver must not begin a transaction by itself.
            {'isolation_level': None} if backend == 'sqlite' else {}
        ),
    )
    with own.begin() as connection:
        if not _is_alone(connection, backend):
            raise exceptions.ServiceUnavailable(
                'another "nova-accel-manage db sync" has been at work on the '
                f'database of accelerators for {WAIT_S} s: wait for it, and '
                'run this again'
            )
        # The lock ends with the connection.
        yield connection


def _check_answers(url: sa.URL) -> None:
    """:raises SQLAlchemyError: the server does not answer in time."""
    limited = sa.create_engine(
        time_limits.of_driver(url, time_limits.of_api()), poolclass=sa.NullPool
    )
    with limited.connect() as connection:
        connection.scalar(sa.select(1))


def _is_alone(connection: sa.Connection, backend: str) -> bool:
    """Wait for another one; whether it has ended in time."""
    if backend == 'mysql':
        # The name is for the whole server, and has 64 characters at most.
        database = str(connection.engine.url.database).encode()
        name = f'nova_accel {hashlib.sha256(database).hexdigest()[:32]}'
        return bool(
            connection.scalar(
                sa.text('SELECT GET_LOCK(:name, :wait_s)'),
                {'name': name, 'wait_s': WAIT_S},
            )
        )
    statements = {
        'sqlite': (f'PRAGMA busy_timeout = {WAIT_S}000', 'BEGIN IMMEDIATE'),
        'postgresql': (
            f"SET LOCAL lock_timeout = '{WAIT_S}s'",
            "SELECT pg_advisory_xact_lock(hashtext('nova_accel db sync'))",
        ),
    }[backend]
    try:
        for statement in statements:
            connection.exec_driver_sql(statement)
    except sa.exc.OperationalError as fault:
        if faults.is_lock_timeout(fault):
            return False
        raise
    return True
