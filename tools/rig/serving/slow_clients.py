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

"""Clients that never end their requests, and need no token for that."""

from collections.abc import Iterable
import contextlib
import socket
import threading

import fixtures

_POST = 'POST /accelerator/v2/device_profiles HTTP/1.1\r\nHost: a\r\n'

#: The beginning of a request whose headers go on for ever.
HEADERS = _POST.encode()


def body(length: str) -> bytes:
    """The beginning of a request whose body goes on for ever.

    :param length: the value of ``Content-Length``
    """
    return f'{_POST}Content-Length: {length}\r\n\r\n'.encode()


#: A usual one, of 100 kB.
BODY = body('100000')

#: The lengths that the processes of uWSGI may take for different numbers.
ODD_LENGTHS = tuple(
    body(text)
    for text in (
        '5\r\nContent-Length: 500',
        '500\r\nContent-Length: 5',
        '5\r\nContent_Length: 500',
        '5, 500',
        '500x',
        '1&',
        '+500',
        '-500',
        '18446744073709551621',
        '18446744073709552121',
        '99999999999999999999999999999999',
        '500\r\nTransfer-Encoding: chunked',
    )
)


class SlowClients(fixtures.Fixture):
    """One connection for each beginning, until the cleanup.

    Each sends a piece now and then, and is made again if it is closed.

    :param beginnings: what each sends at once
    :param interval_s: seconds from one piece to the next
    """

    def __init__(
        self,
        address: tuple[str, int],
        beginnings: Iterable[bytes],
        interval_s: float = 0.5,
    ) -> None:
        super().__init__()
        self._address = address
        self._interval_s = interval_s
        self._beginnings = list(beginnings)
        self._stopped = threading.Event()

    def _setUp(self) -> None:
        self._connections = [self._begun(each) for each in self._beginnings]
        thread = threading.Thread(target=self._run)
        thread.start()
        self.addCleanup(self._end)
        self.addCleanup(thread.join)
        self.addCleanup(self._stopped.set)

    def _begun(self, beginning: bytes) -> socket.socket:
        connection = socket.create_connection(self._address, 60)
        # The server may have closed it by now: it is made again then.
        with contextlib.suppress(OSError):
            connection.sendall(beginning)
        connection.setblocking(False)
        return connection

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            for number, connection in enumerate(self._connections):
                if _goes_on(connection):
                    continue
                connection.close()
                with contextlib.suppress(OSError):
                    self._connections[number] = self._begun(
                        self._beginnings[number]
                    )

    def _end(self) -> None:
        for connection in self._connections:
            connection.close()


def _goes_on(connection: socket.socket) -> bool:
    """Send a piece of a header or of a body; whether the server takes it."""
    try:
        connection.send(b'x')
        # An answer, or the end of the connection.
        connection.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
