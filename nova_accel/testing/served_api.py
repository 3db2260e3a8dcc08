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

"""The API in uWSGI processes, as it is deployed, but without Keystone."""

import contextlib
import http.client
import ipaddress
import os
import pathlib
import socket
import subprocess
import sys
import time

import fixtures
from nova.db.api import models as nova_models
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.testing import nova_conf

_UWSGI, _MANAGE = (pathlib.Path(sys.executable).with_name(name)
                   for name in ('uwsgi', 'nova-accel-manage'))

_START_S = 90
_STOP_S = 15


def paste_without_tokens() -> str:
    """Our ``api-paste.ini`` without ``authtoken``.

    The next filter, Nova's, then believes ``X-Roles``, ``X-Project-Id``,
    ``X-User-Id`` and ``X-Service-Roles`` of whoever asks.
    """
    return nova_conf.api_paste_path().read_text().replace(
        ' authtoken keystonecontext ', ' keystonecontext ')


def check_loopback(address: str) -> None:
    """:raises ConfigurationError: others than this machine could ask."""
    try:
        is_loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise exceptions.ConfigurationError(
            f'{address} is no address of the loopback: whoever can ask this '
            'server may do everything')


class ServedApi(fixtures.Fixture):
    """The API alone, with all tables in its database.

    :param database_url: of the accelerators; a new SQLite file if it is None
    :param nova_database_url: of Nova's API, which no instance is in; a new
        SQLite file if it is None
    :param port: 0 takes a free one
    :ivar url: of ``/accelerator``, without a slash at the end
    :ivar log: what the processes write
    :raises ConfigurationError: the address is not on the loopback, uWSGI is
        not installed, or the server does not start; has what it wrote
    """

    def __init__(self, database_url: str | None = None,
                 nova_database_url: str | None = None, processes: int = 1,
                 address: str = '127.0.0.1', port: int = 0) -> None:
        super().__init__()
        check_loopback(address)
        if not _UWSGI.exists():
            raise exceptions.ConfigurationError(
                f'uWSGI is not installed: there is no {_UWSGI}')
        self._urls = database_url, nova_database_url
        self._processes = processes
        self._address = address
        self._port = port

    def setUp(self) -> None:
        super().setUp()
        # Of what _setUp raises, fixtures makes an error of its own.
        try:
            self._make_tables()
            self._start()
            self._wait()
        except BaseException:
            self.cleanUp()
            raise

    def _setUp(self) -> None:
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self._socket = self._listen()
        [address, self.port] = self._socket.getsockname()[:2]
        self.url = f'http://{address}:{self.port}/accelerator'
        self.log = self._directory / 'log'
        self._configure()

    def memory_mb(self) -> float:
        """Resident memory of all its processes."""
        return sum(_resident_kb(pid) for pid in self._pids()) / 1024

    def _configure(self) -> None:
        files = f'sqlite:///{self._directory}'
        url, nova_url = self._urls
        self._nova_url = nova_url or f'{files}/nova_api.sqlite'
        (self._directory / 'api-paste.ini').write_text(paste_without_tokens())
        nova_conf.write(self._directory / 'nova.conf', {
            'DEFAULT': {'state_path': str(self._directory)},
            'database': {'connection': f'{files}/nova.sqlite'},
            'api_database': {'connection': self._nova_url},
            'nova_accel_database': {
                'connection': url or f'{files}/accelerators.sqlite'}})

    def _make_tables(self) -> None:
        engine = sa.create_engine(self._nova_url)
        nova_models.BASE.metadata.create_all(engine)
        engine.dispose()
        done = subprocess.run(
            [_MANAGE, '--config-file', self._directory / 'nova.conf',
             'db', 'sync'],
            check=False, capture_output=True, text=True)
        if done.returncode:
            raise exceptions.ConfigurationError(
                f'the database has not got its tables: {done.stderr}')

    def _listen(self) -> socket.socket:
        family = (socket.AF_INET6 if ':' in self._address
                  else socket.AF_INET)
        listener = socket.create_server(
            (self._address, self._port), family=family, backlog=100)
        self.addCleanup(listener.close)
        return listener

    def _start(self) -> None:
        with self.log.open('wb') as log:
            self._process = subprocess.Popen(
                [_UWSGI, f'--virtualenv={sys.prefix}',
                 '--module=nova_accel.api.wsgi', '--master',
                 f'--processes={self._processes}', '--need-app',
                 '--die-on-term', '--no-orphans',
                 f'--http-socket=fd://{self._socket.fileno()}'],
                pass_fds=[self._socket.fileno()],
                env={**os.environ,
                     'OS_NOVA_CONFIG_DIR': str(self._directory),
                     'OS_NOVA_CONFIG_FILES': 'api-paste.ini;nova.conf'},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self._stop)

    def _wait(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end and self._process.poll() is None:
            connection = http.client.HTTPConnection(
                self._address, self.port, timeout=_START_S)
            with contextlib.closing(connection), contextlib.suppress(
                    OSError, http.client.HTTPException):
                connection.request('GET', '/accelerator')
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.1)
        raise exceptions.ConfigurationError(
            f'the API does not start: {self.log.read_text()}')

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _pids(self) -> list[int]:
        """The master's and its workers'."""
        master = self._process.pid
        workers = pathlib.Path(f'/proc/{master}/task/{master}/children')
        return [master, *map(int, workers.read_text().split())]


def _resident_kb(pid: int) -> int:
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    [line] = [line for line in status.splitlines()
              if line.startswith('VmRSS:')]
    return int(line.split()[1])
