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

"""A WSGI module in processes of uWSGI, on one port of the loopback."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import http.client
import pathlib
import socket

from rig.serving import process

_START_S = 90


class Uwsgi(process.Process):
    """The processes, and the socket that they listen on.

    :param prefix: of the virtual environment that has uWSGI and the module
    :param options: further options of uWSGI
    :param port: 0 takes a free port
    :ivar address: the address where they listen, with ``port``
    """

    def __init__(
        self,
        prefix: pathlib.Path,
        module: str,
        processes: int,
        log: pathlib.Path,
        environment: Mapping[str, str],
        address: str = '127.0.0.1',
        port: int = 0,
        options: Sequence[str] = (),
    ) -> None:
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        self._socket = socket.create_server(
            (address, port), family=family, backlog=100
        )
        [self.address, self.port] = self._socket.getsockname()[:2]
        descriptor = self._socket.fileno()
        super().__init__(
            [
                prefix / 'bin/uwsgi',
                f'--virtualenv={prefix}',
                f'--module={module}',
                '--master',
                f'--processes={processes}',
                '--need-app',
                '--die-on-term',
                '--no-orphans',
                f'--http-socket=fd://{descriptor}',
                *options,
            ],
            log,
            environment,
            [descriptor],
        )

    def _setUp(self) -> None:
        self.addCleanup(self._socket.close)
        super()._setUp()

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
