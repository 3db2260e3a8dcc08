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

"""The API in uWSGI processes, as it is deployed, with or without Keystone."""

import ipaddress
import pathlib
import subprocess
import sys

import fixtures
from nova.db.api import models as nova_models
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import exceptions
from rig.serving import nova_conf
from rig.serving import process
from rig.serving import usage
from rig.serving import uwsgi

_UWSGI, _MANAGE = (
    pathlib.Path(sys.executable).with_name(name)
    for name in ('uwsgi', 'nova-accel-manage')
)


def paste_without_tokens() -> str:
    """Our ``api-paste.ini`` without ``authtoken``.

    The next filter, Nova's, then believes every caller's ``X-Roles``,
    ``X-Project-Id``, ``X-User-Id`` and ``X-Service-Roles``.
    """
    return (
        nova_conf.api_paste_path()
        .read_text()
        .replace(' authtoken nova_accel_context ', ' nova_accel_context ')
    )


def check_loopback(address: str) -> None:
    """:raises ConfigurationError: other machines could reach the address."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise exceptions.ConfigurationError(
            f'{address} is no address of the loopback: whoever can ask this '
            'server may do everything'
        )


class ServedApi(process.StartedFixture):
    """The API alone, with all tables in its database.

    :param database_url: of the accelerators; a new SQLite file if it is None
    :param nova_database_url: of Nova's API, without instances; a new SQLite
        file if it is None
    :param processes: None for as many as in a deployment
    :param port: 0 takes a free port
    :param sections: further ones of ``nova.conf``. Without
        ``keystone_authtoken`` the API believes every caller
    :ivar url: of ``/accelerator``, without a slash at the end
    :ivar log: the file with the output of the processes
    :raises ConfigurationError: the address is not on loopback, uWSGI is not
        installed, or the server does not start; the text has its output
    """

    def __init__(
        self,
        database_url: str | None = None,
        nova_database_url: str | None = None,
        processes: int | None = 1,
        address: str = '127.0.0.1',
        port: int = 0,
        sections: nova_conf.Sections | None = None,
    ) -> None:
        super().__init__()
        check_loopback(address)
        if not _UWSGI.exists():
            raise exceptions.ConfigurationError(
                f'uWSGI is not installed: there is no {_UWSGI}'
            )
        self._urls = database_url, nova_database_url
        self._processes = processes
        self._address = address
        self._port = port
        self._sections = sections or {}

    def start(self) -> None:
        self._make_tables()
        self._serve()

    def _setUp(self) -> None:
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self._configure()

    def _serve(self) -> None:
        self._server = self.useFixture(
            uwsgi.Deployed(
                pathlib.Path(sys.prefix),
                self._directory / 'pool.ini',
                self._pool,
                self._directory / 'log',
                {'OS_NOVA_CONFIG_DIR': str(self._directory)},
                self._address,
                self._port,
            )
        )
        self.log = self._server.log
        self.port = self._server.port
        self.url = f'http://{self._server.address}:{self.port}/accelerator'
        self._server.wait('/accelerator')

    def stop(self) -> int:
        """End it as systemd does.

        :returns: the exit status of the first process
        """
        return self._server.stop()

    def restart(self) -> None:
        """End it as systemd does, and start it at the same port.

        :raises ConfigurationError: it does not start again
        """
        self.stop()
        self._port = self.port
        self._serve()

    def usage(self) -> usage.Usage:
        """What all its processes use."""
        return self._server.usage()

    def map_host(self, name: str) -> None:
        """Put a host into a cell, as ``nova-manage cell_v2`` does."""
        engine = sa.create_engine(self._nova_url)
        with engine.begin() as connection:
            connection.execute(
                sa.insert(nova_models.CellMapping.__table__),
                {
                    'id': 1,
                    'uuid': uuidutils.generate_uuid(),
                    'name': 'cell1',
                    'transport_url': 'fake:/',
                    'database_connection': 'sqlite://',
                },
            )
            connection.execute(
                sa.insert(nova_models.HostMapping.__table__),
                {'cell_id': 1, 'host': name},
            )
        engine.dispose()

    def _configure(self) -> None:
        files = f'sqlite:///{self._directory}'
        url, nova_url = self._urls
        self._nova_url = nova_url or f'{files}/nova_api.sqlite'
        (self._directory / 'api-paste.ini').write_text(
            nova_conf.api_paste_path().read_text()
            if 'keystone_authtoken' in self._sections
            else paste_without_tokens()
        )
        nova_conf.write(
            self._directory / 'nova.conf',
            {
                **self._sections,
                'DEFAULT': {
                    'state_path': str(self._directory),
                    **self._sections.get('DEFAULT', {}),
                },
                'database': {'connection': f'{files}/nova.sqlite'},
                'api_database': {'connection': self._nova_url},
                'nova_accel_database': {
                    'connection': url or f'{files}/accelerators.sqlite'
                },
            },
        )

    def _pool(self, address: str) -> str:
        """The text of uWSGI's file, as it is deployed at an address."""
        return nova_conf.pool(
            {
                'http': address,
                'sockets': str(self._directory),
                'env': 'OS_NOVA_CONFIG_FILES=api-paste.ini;nova.conf',
                **(
                    {}
                    if self._processes is None
                    else {'processes': str(self._processes)}
                ),
            }
        )

    def _make_tables(self) -> None:
        engine = sa.create_engine(self._nova_url)
        nova_models.BASE.metadata.create_all(engine)
        engine.dispose()
        done = subprocess.run(
            [
                _MANAGE,
                '--config-file',
                self._directory / 'nova.conf',
                'db',
                'sync',
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise exceptions.ConfigurationError(
                f'the database has not got its tables: {done.stderr}'
            )
