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
from alembic import script
from alembic import util as alembic_util
from alembic.runtime import migration
from oslo_log import log as logging
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions
from nova_accel.db.migrations import sync_lock
from nova_accel.db.sql import engine
from nova_accel.db.sql import faults

LOG = logging.getLogger(__name__)


def config(connection: sa.Connection) -> alembic_config.Config:
    """The configuration with which alembic's commands run our steps."""
    result = _config()
    result.attributes['connection'] = connection
    return result


def _config() -> alembic_config.Config:
    result = alembic_config.Config()
    result.set_main_option('script_location', 'nova_accel.db:migrations')
    return result


def sync(version: str = 'head') -> None:
    """Run the steps up to the version that are not done yet.

    A step that was interrupted is run again, see
    :mod:`nova_accel.db.migrations.operations`. If another process does the
    same, this one waits for it.

    :raises InvalidRequest: there is no such version
    :raises ServiceUnavailable: the database cannot be used, or others did not
        finish; says what to do
    """
    try:
        with sync_lock.alone(engine.url()) as connection:
            command.upgrade(config(connection), version)
    except alembic_util.CommandError as fault:
        raise exceptions.InvalidRequest(
            f'the database has no version {version}: {fault}'
        ) from fault
    except sa_exc.SQLAlchemyError as fault:
        LOG.error(
            'The tables are not those of this release yet: %s',
            faults.of_driver(fault),
        )
        raise faults.unavailable(
            fault, engine.place()
        ) or exceptions.ServiceUnavailable(
            'the database of accelerators refuses a step '
            f'({getattr(fault, "orig", fault)}): when that is mended, run '
            '"nova-accel-manage db sync" again'
        ) from fault


def newest() -> str:
    """The version of this release."""
    scripts = script.ScriptDirectory.from_config(_config())
    [head] = scripts.get_heads()
    return head


def is_known(version: str) -> bool:
    """Whether this release has the version: any other one is newer."""
    scripts = script.ScriptDirectory.from_config(_config())
    return version in {step.revision for step in scripts.walk_revisions()}


@engine.retried
def version() -> str | None:
    """The version of the database, None if it is empty."""
    with engine.reader() as connection:
        return migration.MigrationContext.configure(
            connection
        ).get_current_revision()
