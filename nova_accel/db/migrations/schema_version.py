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

"""The version of the schema, without alembic.

The API compares it when it starts. alembic would stay in the memory of each of
its processes, so it is imported only to explain a difference.
"""

from oslo_log import log as logging
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions
from nova_accel.db.sql import engine
from nova_accel.db.sql import time_limits

LOG = logging.getLogger(__name__)

#: The version of this release. A test compares it with the steps.
NEWEST = 'a94c1e5d70b3'

#: alembic's own table, with one row.
TABLE = sa.Table(
    'alembic_version',
    sa.MetaData(),
    sa.Column('version_num', sa.String(32), primary_key=True),
)


def read(connection: sa.Connection) -> str | None:
    """The version of a database, None if it has none."""
    if not sa.inspect(connection).has_table(TABLE.name):
        return None
    return connection.scalar(sa.select(TABLE.c.version_num))


def check_not_older() -> None:
    """Check that a service of this release works with the database.

    It does with a newer schema, too: on an upgrade the schema comes first, and
    services of the release before may have to be started again. A database
    that does not answer may be newer, so the service may start.

    The connection is closed, since the service may fork from here.

    :raises ConfigurationError: the schema is older, or there is none
    """
    limits_of = time_limits.of_api()
    own = sa.create_engine(
        time_limits.of_driver(engine.url(), limits_of), poolclass=sa.NullPool
    )
    time_limits.set_up(own, limits_of)
    try:
        with own.connect() as connection:
            found = read(connection)
    except sa_exc.SQLAlchemyError as fault:
        LOG.warning(
            'It is not known whether the database of accelerators has the '
            'schema of this release, as it does not answer: %s',
            fault,
        )
        return
    if found != NEWEST and _is_older(found):
        raise exceptions.ConfigurationError(
            'the database of accelerators '
            + ('has no schema' if found is None else f'is at version {found}')
            + f', and this release needs version {NEWEST}: run '
            '"nova-accel-manage db sync" of this release, and start the '
            'service again'
        )


def _is_older(found: str | None) -> bool:
    """Whether a version that is not the newest is one of this release."""
    from nova_accel.db.migrations import migration

    return found is None or migration.is_known(found)
