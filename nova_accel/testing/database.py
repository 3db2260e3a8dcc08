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

"""Databases for tests: a file of SQLite, or a database on a real server."""

import atexit
import functools
import os
import pathlib
import tempfile
import unittest

import fixtures
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import provision
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

CONF = conf.CONF

#: The servers on which databases may be created. The environment variable
#: ``OS_TEST_DBAPI_ADMIN_CONNECTION`` may have other URLs, separated by
#: semicolons, as in other projects that use oslo.db.
ADMIN_URLS = (
    'mysql+pymysql://root@127.0.0.1/;'
    'postgresql+psycopg2://root@127.0.0.1/postgres'
)

#: For ``testscenarios``: the same tests on each kind of database.
SCENARIOS = [
    (backend, {'backend': backend})
    for backend in ('sqlite', 'mysql', 'postgresql')
]


class Database(fixtures.Fixture):
    """A database of one test: configured, with all tables, and empty.

    :param backend: ``sqlite`` (a file), ``mysql`` or ``postgresql``
    :param tables: False for a database without any table
    :raises unittest.SkipTest: there is no such server. If the environment has
        ``CI=true``, that is an error instead
    """

    def __init__(self, backend: str = 'sqlite', tables: bool = True) -> None:
        super().__init__()
        self.backend = backend
        self.tables = tables

    def setUp(self) -> None:
        if self.backend != 'sqlite':
            # The skip has to be raised here: the fixtures library turns any
            # exception of _setUp into an error.
            _on_server(self.backend)
        super().setUp()

    def _setUp(self) -> None:
        if self.backend == 'sqlite':
            directory = self.useFixture(fixtures.TempDir()).path
            file = pathlib.Path(directory) / 'accelerators.sqlite'
            if self.tables:
                file.write_bytes(_empty_file())
            url = f'sqlite:///{file}'
        else:
            url = _on_server(self.backend)
        CONF.set_override('connection', url, 'nova_accel_database')
        self.addCleanup(
            CONF.clear_override, 'connection', 'nova_accel_database'
        )
        engine.forget()
        self.addCleanup(engine.forget)
        if self.backend != 'sqlite':
            self._empty()

    @property
    def engine(self) -> sa.Engine:
        """The engine of nova_accel's transactions, to listen to."""
        result: sa.Engine = engine.manager().writer.get_engine()
        return result

    def _empty(self) -> None:
        with self.engine.connect() as connection:
            is_there = schema_version.read(connection) == schema_version.NEWEST
        if self.tables and is_there:
            with self.engine.begin() as connection:
                for table in reversed(schema.METADATA.sorted_tables):
                    connection.execute(sa.delete(table))
            return
        _server(self.backend).drop_all_objects(self.engine)
        if self.tables:
            _make_tables(self.engine)


def _make_tables(of: sa.Engine) -> None:
    schema.METADATA.create_all(of)
    schema_version.TABLE.create(of)
    with of.begin() as connection:
        connection.execute(
            sa.insert(schema_version.TABLE).values(
                version_num=schema_version.NEWEST
            )
        )


@functools.cache
def _empty_file() -> bytes:
    """A file of SQLite with all tables, which are made once in a process."""
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / 'empty.sqlite'
        made = sa.create_engine(f'sqlite:///{file}')
        _make_tables(made)
        made.dispose()
        return file.read_bytes()


@functools.cache
def _server(backend: str) -> provision.Backend:
    urls = os.environ.get('OS_TEST_DBAPI_ADMIN_CONNECTION', ADMIN_URLS)
    for text in urls.split(';'):
        url = sa.make_url(text)
        if url.get_backend_name() == backend:
            known = provision.Backend.backends_by_database_type
            known[backend] = provision.Backend(backend, url)
            return provision.Backend.backend_for_database_type(backend)
    raise db_exc.BackendNotAvailable(f'no URL of a {backend} server is known')


class ForeignDatabase(fixtures.Fixture):
    """A new database on a server, for tables that are not ours.

    :param backend: ``mysql`` or ``postgresql``
    :ivar engine: of the database
    :raises unittest.SkipTest: as :class:`Database`
    """

    def __init__(self, backend: str) -> None:
        super().__init__()
        self._url = _new_on_server(backend)

    def _setUp(self) -> None:
        self.engine = sa.create_engine(self._url)
        self.addCleanup(self.engine.dispose)


@functools.cache
def _on_server(backend: str) -> str:
    """The URL of the database that all tests of this process share."""
    return _new_on_server(backend)


def _new_on_server(backend: str) -> str:
    """The URL of a new database, which is dropped when the process ends."""
    try:
        server = _server(backend)
    except db_exc.BackendNotAvailable as fault:
        if os.environ.get('CI') == 'true':
            raise
        raise unittest.SkipTest(str(fault)) from fault
    name = f'nova_accel_{uuidutils.generate_uuid(dashed=False)}'
    server.create_named_database(name)
    atexit.register(server.drop_named_database, name)
    url: sa.URL = server.provisioned_database_url(name)
    return url.render_as_string(hide_password=False)
