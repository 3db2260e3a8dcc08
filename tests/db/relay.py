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

"""The way to a server, which can be frozen as the server itself could be.

The process of the relay gets SIGSTOP: connections stay, and new ones are made
by the kernel, but no one reads from them or answers.
"""

import contextlib
import os
import pathlib
import signal
import socket
import socketserver
import sys
import threading

import fixtures

from rig.serving import process


class Relay(fixtures.Fixture):
    """A process that passes on what comes.

    :ivar port: where it listens, on 127.0.0.1
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._target = host, str(port)

    def _setUp(self) -> None:
        self._start(0)

    def _start(self, port: int) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        told = directory / 'told'
        self._running = self.useFixture(
            process.Process(
                [sys.executable, __file__, *self._target, told, str(port)],
                directory / 'log',
            )
        )
        self._running.wait_for(told.exists)
        number, pid = told.read_text().split()
        self.port, self._pid = int(number), int(pid)
        # Before it is asked to end, which it could not hear.
        self.addCleanup(self.thaw)

    def freeze(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        # The signal is only noted by then, and much may still pass.
        os.waitid(os.P_PID, self._pid, os.WSTOPPED)

    def thaw(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it: connections break, and new ones are refused."""
        self._running.stop()

    def come_back(self) -> None:
        """Listen again after :meth:`kill`."""
        self._start(self.port)


class _Passing(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        there = socket.create_connection(sys.argv[1:3])
        threading.Thread(
            target=_pass_on, args=(there, self.request), daemon=True
        ).start()
        _pass_on(self.request, there)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


if __name__ == '__main__':
    server = _Server(('127.0.0.1', int(sys.argv[4])), _Passing)
    temporary = pathlib.Path(f'{sys.argv[3]}.new')
    temporary.write_text(f'{server.server_address[1]} {os.getpid()}')
    temporary.rename(sys.argv[3])
    server.serve_forever()
