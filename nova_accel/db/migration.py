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

"""Bring a database to the schema of this release."""

from alembic import command
from alembic import config as alembic_config
from alembic import util as alembic_util
from alembic.runtime import migration
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import engine


def config(connection: sa.Connection) -> alembic_config.Config:
    """What alembic's commands need to work on our steps."""
    result = alembic_config.Config()
    result.set_main_option('script_location', 'nova_accel.db:migrations')
    result.attributes['connection'] = connection
    return result


def sync(version: str = 'head') -> None:
    """Take the steps up to the version; none if they are done already.

    :raises InvalidRequest: there is no such version
    :raises ServiceUnavailable: the database does not answer
    """
    try:
        with engine.writer() as connection:
            command.upgrade(config(connection), version)
    except alembic_util.CommandError as fault:
        raise exceptions.InvalidRequest(
            f'the database has no version {version}: {fault}') from fault
    except db_exc.RetryRequest as lost:
        # MySQL may have done a part of it.
        raise lost.inner_exc from lost


@engine.retried
def version() -> str | None:
    """The version of the database, None if it is empty."""
    with engine.reader() as connection:
        return migration.MigrationContext.configure(
            connection).get_current_revision()
