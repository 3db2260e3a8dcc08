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

"""WSGI applications in processes of uWSGI, on one port of the loopback."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import http.client
import os
import pathlib
import socket

from rig.serving import process

_START_S = 90


class Uwsgi(process.Process):
    """The processes of uWSGI.

    :param prefix: of the virtual environment that has uWSGI
    :param options: of uWSGI
    :ivar address: the address where they listen, with ``port``
    """

    def __init__(
        self,
        prefix: pathlib.Path,
        log: pathlib.Path,
        environment: Mapping[str, str],
        address: str,
        port: int,
        options: Sequence[str],
        descriptors: Sequence[int] = (),
    ) -> None:
        self.address = address
        self.port = port
        command: list[str | os.PathLike[str]] = [
            prefix / 'bin/uwsgi',
            f'--virtualenv={prefix}',
            '--need-app',
            '--die-on-term',
            '--no-orphans',
            *options,
        ]
        super().__init__(command, log, environment, descriptors)

    def wait(self, path: str) -> None:
        """Wait until uWSGI serves the path.

        :raises ConfigurationError: it does not; the text has its output
        """
        self.wait_for(lambda: self._serves(path), _START_S)

    def _serves(self, path: str) -> bool:
        connection = http.client.HTTPConnection(
            self.address, self.port, timeout=_START_S
        )
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request('GET', path)
            return connection.getresponse().status == 200
        return False


class Module(Uwsgi):
    """A module in workers that speak HTTP themselves.

    :param options: further options of uWSGI
    """

    def __init__(
        self,
        prefix: pathlib.Path,
        module: str,
        processes: int,
        log: pathlib.Path,
        environment: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> None:
        self._socket = socket.create_server(('127.0.0.1', 0), backlog=100)
        [address, port] = self._socket.getsockname()
        descriptor = self._socket.fileno()
        super().__init__(
            prefix,
            log,
            environment,
            address,
            port,
            [
                f'--module={module}',
                '--master',
                f'--processes={processes}',
                f'--http-socket=fd://{descriptor}',
                *options,
            ],
            [descriptor],
        )

    def _setUp(self) -> None:
        self.addCleanup(self._socket.close)
        super()._setUp()


class Deployed(Uwsgi):
    """What a file of uWSGI describes.

    :param port: 0 takes a free port
    :param text: makes the text of the file, of the address with its port
    :param path: where the file is written
    """

    def __init__(
        self,
        prefix: pathlib.Path,
        path: pathlib.Path,
        text: Callable[[str], str],
        log: pathlib.Path,
        environment: Mapping[str, str],
        address: str,
        port: int,
    ) -> None:
        is_v6 = ':' in address
        # Its routers take no socket that is bound already.
        with socket.create_server(
            (address, port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
        ) as chosen:
            port = chosen.getsockname()[1]
        self._path = path
        self._text = text(
            f'[{address}]:{port}' if is_v6 else f'{address}:{port}'
        )
        super().__init__(
            prefix, log, environment, address, port, [f'--ini={path}']
        )

    def _setUp(self) -> None:
        self._path.write_text(self._text)
        super()._setUp()
