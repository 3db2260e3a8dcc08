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

"""A client of HTTP that costs little.

The library's client would take a quarter of the measured time, on the same
processors. This one speaks HTTP/1.0, in which the server closes the connection
at the end of an answer.
"""

from collections.abc import Mapping
import json
import socket
from typing import Any

#: Seconds. Cyborg's answers take half a minute when there is much to do.
TIMEOUT_S = 600

_CHUNK = 65536


class HttpClient:
    """Asks one server on 127.0.0.1."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._port = port
        self._headers = ''.join(
            f'{name}: {value}\r\n'
            for name, value in {
                'Host': f'127.0.0.1:{port}',
                **headers,
            }.items()
        )

    def ask(
        self, method: str, path: str, body: Any = None
    ) -> tuple[int, bytes]:
        """The status and the body of the answer.

        :param body: is sent as JSON, unless it is None
        """
        content = b'' if body is None else json.dumps(body).encode()
        request = (
            f'{method} {path} HTTP/1.0\r\n{self._headers}'
            f'Content-Length: {len(content)}\r\n\r\n'
        ).encode()
        with socket.socket() as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(('127.0.0.1', self._port))
            connection.sendall(request + content)
            answer = b''.join(iter(lambda: connection.recv(_CHUNK), b''))
        head, _separator, text = answer.partition(b'\r\n\r\n')
        return int(head.split(maxsplit=2)[1]), text
