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

"""Cyborg's tables in a database, as its own programs make them."""

from collections.abc import Iterator
import os
import pathlib
import re
import subprocess
import tempfile
from typing import Any

import fixtures
import sqlalchemy as sa

from nova_accel.model.cyborg import snapshot
from nova_accel.testing import database
from rig.cyborg import programs
from rig.serving import nova_conf
from rig.serving import process

#: In the order of their foreign keys.
NAMES = (
    'device_profiles',
    'devices',
    'controlpath_ids',
    'deployables',
    'attributes',
    'attach_handles',
    'extended_accelerator_requests',
)

_RECORDED = pathlib.Path(__file__).parent / 'recorded' / 'cyborg17.sql'

_UUIDS = ('uuid', 'rp_uuid', 'device_rp_uuid', 'instance_uuid')

_IDS = re.compile('id|.*_id')

#: Columns whose names look like ids, and are not ids of rows that are copied.
_SAME = (
    'project_id',
    'device_profile_id',
    'device_profile_group_id',
    'bitstream_id',
)


class Tables(fixtures.Fixture):
    """A new database with Cyborg 17's tables: four hosts with eighty ARQs.

    They are made by Cyborg's own programs if its environment is there, else
    restored from what was recorded of that. Cyborg makes them on MariaDB
    alone: on PostgreSQL its migration to 6c77bd6afea5 fails, because it gives
    a type no name. There they are copied, column by column.

    :param backend: ``mysql`` or ``postgresql``
    :ivar engine: of the database
    :ivar url: of the database, with its password
    """

    def __init__(self, backend: str) -> None:
        super().__init__()
        self._made = database.ForeignDatabase('mysql')
        self._copy = (
            None if backend == 'mysql' else database.ForeignDatabase(backend)
        )

    def _setUp(self) -> None:
        self.engine = self.useFixture(self._made).engine
        self.make()
        if self._copy is not None:
            made, self.engine = self.engine, self.useFixture(self._copy).engine
            copy(made, self.engine)
        self.url = self.engine.url.render_as_string(hide_password=False)

    def make(self) -> None:
        if programs.is_there():
            make(self.engine)
        else:
            restore(self.engine)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """All that is in them."""
        with self.engine.connect() as connection:
            return {
                name: [
                    tuple(row)
                    for row in connection.execute(
                        sa.select(table).order_by(table.c.id)
                    )
                ]
                for name, table in self.reflected().items()
            }

    def columns(self) -> dict[str, list[tuple[str, str, bool]]]:
        """Name, type and whether it may be null, of each column."""
        return {
            name: [
                (column.name, str(column.type), bool(column.nullable))
                for column in table.columns
            ]
            for name, table in self.reflected().items()
        }

    def reflected(self) -> dict[str, sa.Table]:
        tables = sa.MetaData()
        tables.reflect(self.engine, only=NAMES)
        return {name: tables.tables[name] for name in NAMES}

    def multiply(self, times: int) -> None:
        """Let there be so many of each host and of all that it has."""
        with self.engine.begin() as connection:
            for name, table in self.reflected().items():
                if name != 'device_profiles':
                    connection.execute(_copying(table, times))

    def replace(self, rows: snapshot.Snapshot) -> None:
        """Let there be these rows alone."""
        tables = self.reflected()
        with self.engine.begin() as connection:
            for name in reversed(NAMES):
                connection.execute(sa.delete(tables[name]))
            for name, values in _values(rows):
                if values:
                    connection.execute(sa.insert(tables[name]), values)


class Recorded(Tables):
    """The same, always as it was recorded."""

    def make(self) -> None:
        restore(self.engine)


def _values(
    rows: snapshot.Snapshot,
) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The columns of each table, also those that have no meaning for us."""
    devices = {row.id: row.device_id for row in rows.deployables}
    held = {row.attach_handle_id for row in rows.arqs}
    deployables = {row.id: row.deployable_id for row in rows.handles}
    yield 'device_profiles', [row._asdict() for row in rows.profiles]
    yield 'devices', [row._asdict() for row in rows.devices]
    yield (
        'controlpath_ids',
        [
            {
                'id': row.device_id,
                'uuid': f'path {row.device_id}',
                'cpid_type': 'PCI',
                **row._asdict(),
            }
            for row in rows.controlpath_ids
        ],
    )
    yield 'deployables', [row._asdict() for row in rows.deployables]
    yield (
        'attributes',
        [
            {'id': number, 'uuid': f'attribute {number}', **row._asdict()}
            for number, row in enumerate(rows.attributes, 1)
        ],
    )
    yield (
        'attach_handles',
        [
            {
                'cpid_id': devices[row.deployable_id],
                'in_use': row.id in held,
                **row._asdict(),
            }
            for row in rows.handles
        ],
    )
    yield (
        'extended_accelerator_requests',
        [
            {
                'id': number,
                'substate': 'Initial',
                'deployable_id': deployables.get(row.attach_handle_id or 0),
                **row._asdict(),
            }
            for number, row in enumerate(rows.arqs, 1)
        ],
    )


def _copying(table: sa.Table, times: int) -> sa.Insert:
    """The statement that copies all rows, so that there are so many."""
    first = sa.select(sa.literal(1).label('k')).cte('copies', recursive=True)
    copies = first.union_all(
        sa.select(first.c.k + 1).where(first.c.k < times - 1)
    )
    return sa.insert(table).from_select(
        [column.name for column in table.columns],
        sa.select(
            *(_copied(column, copies.c.k) for column in table.columns)
        ).select_from(table.join(copies, sa.true())),
    )


def _copied(
    column: sa.Column[Any], number: sa.ColumnElement[int]
) -> sa.ColumnElement[Any]:
    """The value of a column in a copy."""
    text = sa.cast(number, sa.String(8))
    if column.name in _UUIDS:
        return sa.func.concat(
            sa.func.left(column, 28), sa.func.lpad(text, 8, '0')
        )
    if column.name == 'hostname':
        return sa.func.concat(column, '-', text)
    if _IDS.fullmatch(column.name) and column.name not in _SAME:
        return column + number * 1_000_000
    return column


def make(engine: sa.Engine) -> None:
    """Have Cyborg make its tables in an empty database, and fill them."""
    url = engine.url.render_as_string(hide_password=False)
    with tempfile.TemporaryDirectory() as directory:
        conf = pathlib.Path(directory) / 'cyborg.conf'
        nova_conf.write(
            conf,
            {
                'DEFAULT': {
                    'state_path': directory,
                    'transport_url': 'fake://',
                },
                'database': {'connection': url},
            },
        )
        process.run(
            programs.prefix() / 'bin/cyborg-dbsync',
            '--config-file',
            conf,
            'upgrade',
        )
        process.run(
            programs.prefix() / 'bin/python',
            pathlib.Path(__file__).parent / 'hosts_of_cyborg.py',
            conf,
        )


def restore(engine: sa.Engine) -> None:
    """Make what was recorded in an empty database."""
    # The tables are in the order of their names.
    off, on = (f'SET foreign_key_checks = {value}' for value in (0, 1))
    statements = _RECORDED.read_text().strip().removesuffix(';').split(';\n')
    with engine.begin() as connection:
        for statement in (off, *statements, on):
            connection.exec_driver_sql(statement.replace('%', '%%'))


def copy(source: sa.Engine, target: sa.Engine) -> None:
    """Copy all tables to another kind of server."""
    tables, copies = sa.MetaData(), sa.MetaData()
    tables.reflect(source, only=[*NAMES, 'alembic_version'])
    for table in tables.sorted_tables:
        sa.Table(
            table.name,
            copies,
            *(
                sa.Column(
                    column.name,
                    _of_any_server(column),
                    primary_key=column.primary_key,
                    nullable=column.nullable,
                )
                for column in table.columns
            ),
        )
    copies.create_all(target)
    with source.connect() as reader, target.begin() as writer:
        for table in tables.sorted_tables:
            rows = reader.execute(sa.select(table)).mappings().all()
            writer.execute(
                sa.insert(copies.tables[table.name]),
                [
                    {
                        name: bool(value) if name == 'in_use' else value
                        for name, value in row.items()
                    }
                    for row in rows
                ],
            )


def _of_any_server(column: sa.Column[Any]) -> sa.types.TypeEngine[Any]:
    if column.name == 'in_use':
        return sa.Boolean()
    if isinstance(column.type, sa.Enum):
        return sa.String(255)
    return column.type.as_generic()


def record(engine: sa.Engine) -> None:
    """Write what a database has to the file that is restored."""
    url = engine.url
    dumped = subprocess.run(
        [
            'mysqldump',
            '--compact',
            '--skip-extended-insert',
            f'--host={url.host}',
            f'--user={url.username}',
            url.database or '',
        ],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, 'MYSQL_PWD': url.password or ''},
    ).stdout
    _RECORDED.parent.mkdir(exist_ok=True)
    _RECORDED.write_text(
        ''.join(
            f'{line}\n'
            for line in dumped.splitlines()
            # These set the session of whoever restores it.
            if line and not line.startswith('/*')
        )
    )
