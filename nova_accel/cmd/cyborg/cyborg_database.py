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

"""The database of a Cyborg that does not run any more."""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions
from nova_accel.db.sql import database_url
from nova_accel.model.cyborg import snapshot

_ARQS = 'extended_accelerator_requests'

#: Table -> what its rows are.
_KINDS: dict[str, type[Any]] = {
    'device_profiles': snapshot.Profile,
    'devices': snapshot.CyborgDevice,
    'controlpath_ids': snapshot.ControlPath,
    'deployables': snapshot.CyborgDeployable,
    'attributes': snapshot.Attribute,
    'attach_handles': snapshot.Handle,
    _ARQS: snapshot.CyborgArq,
}

_BACKENDS = ('mysql', 'postgresql')

#: How many rows are changed at a time.
_AT_ONCE = 1000


class CyborgDatabase:
    """Cyborg's tables, read as they are.

    :param url: as in ``[database] connection`` of Cyborg
    :raises ConfigurationError: it is no URL of a database that Cyborg can use
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)

    def read(self) -> snapshot.Snapshot:
        """All that matters of it, as one transaction sees it.

        :raises ConfigurationError: it is not that of Cyborg 16 or 17.
        :raises ServiceUnavailable: it cannot be read.
        """
        with self._reader() as connection:
            _check_release(connection)
            found = {
                name: tuple(
                    kind(*map(_value, row))
                    for row in connection.execute(
                        sa.select(
                            *(sa.column(field) for field in kind._fields)
                        )
                        .select_from(sa.table(name))
                        .order_by(sa.column('id'))
                    )
                )
                for name, kind in _KINDS.items()
            }
        return snapshot.Snapshot(
            profiles=found['device_profiles'],
            devices=found['devices'],
            controlpath_ids=found['controlpath_ids'],
            deployables=found['deployables'],
            attributes=found['attributes'],
            handles=found['attach_handles'],
            arqs=found[_ARQS],
        )

    def delete_arqs(self, uuids: Collection[str]) -> int:
        """Delete ARQs and free their handles, as Cyborg does.

        :returns: how many there were
        :raises ServiceUnavailable: nothing is changed.
        """
        arqs = sa.table(
            _ARQS, sa.column('uuid'), sa.column('attach_handle_id')
        )
        handles = sa.table(
            'attach_handles',
            sa.column('id'),
            sa.column('in_use', sa.Boolean),
        )
        ordered = sorted(uuids)
        deleted = 0
        with _translated(), self._engine.begin() as connection:
            for start in range(0, len(ordered), _AT_ONCE):
                these = arqs.c.uuid.in_(ordered[start : start + _AT_ONCE])
                held = list(
                    connection.scalars(
                        sa.select(arqs.c.attach_handle_id).where(
                            these, arqs.c.attach_handle_id.is_not(None)
                        )
                    )
                )
                deleted += connection.execute(
                    sa.delete(arqs).where(these)
                ).rowcount
                connection.execute(
                    sa.update(handles)
                    .where(
                        handles.c.id.in_(held),
                        ~sa.exists().where(
                            arqs.c.attach_handle_id == handles.c.id
                        ),
                    )
                    .values(in_use=False)
                )
        return deleted

    @contextlib.contextmanager
    def _reader(self) -> Iterator[sa.Connection]:
        with (
            _translated(),
            self._engine.connect().execution_options(
                isolation_level='REPEATABLE READ'
            ) as connection,
        ):
            yield connection


def _engine(url: str) -> sa.Engine:
    parsed = database_url.parse(url, "the URL of Cyborg's database")
    try:
        if parsed.get_backend_name() in _BACKENDS:
            return sa.create_engine(parsed, poolclass=sa.NullPool)
    except (sa_exc.ArgumentError, ImportError):
        # Not chained: the fault's text may have the password.
        pass
    raise exceptions.ConfigurationError(
        "the URL of Cyborg's database is not one of MySQL, MariaDB or "
        'PostgreSQL whose driver is installed, as [database] connection of '
        'cyborg.conf has it'
    )


def _check_release(connection: sa.Connection) -> None:
    try:
        revision = connection.scalar(
            sa.select(sa.column('version_num')).select_from(
                sa.table('alembic_version')
            )
        )
    except sa_exc.ProgrammingError as fault:
        raise exceptions.ConfigurationError(
            'the database has no table alembic_version, so it is not that of '
            'Cyborg'
        ) from fault
    if revision not in snapshot.RELEASES:
        raise exceptions.ConfigurationError(
            f'the database is of revision {revision}. Those of Cyborg '
            + ' and '.join(sorted(snapshot.RELEASES.values()))
            + ' can be imported: upgrade Cyborg to one of them first'
        )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sa_exc.DBAPIError as fault:
        raise exceptions.ServiceUnavailable(
            f"Cyborg's database cannot be used: {fault.orig}"
        ) from fault


def _value(value: Any) -> Any:
    """Times are in UTC, without saying so."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC)
    return value
