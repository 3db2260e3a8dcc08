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

"""WSGI applications on one loopback port."""

from concurrent import futures
import socketserver
from typing import Any
from wsgiref import simple_server

import fixtures
from paste import urlmap

HOST = '127.0.0.1'


class _QuietHandler(simple_server.WSGIRequestHandler):
    #: A client that connects and says nothing must not delay the cleanup.
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _ThreadingServer(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    # Requests nest (an application here calls another one here), so a bounded
    # pool could wait for itself.
    request_queue_size = 64
    # server_close() then waits for requests that still use the databases.
    daemon_threads = False

    def server_bind(self) -> None:
        # HTTPServer's method asks the resolver for the name of this machine.
        socketserver.TCPServer.server_bind(self)
        self.server_name = HOST
        self.server_port = self.server_address[1]
        self.setup_environ()


class WsgiServer(fixtures.Fixture):
    """Serves applications, each under its prefix, until the cleanup.

    It works with native threads and in a process that eventlet has patched.

    :ivar url: where it listens, without a slash at the end
    """

    def __init__(self, port: int = 0) -> None:
        """:param port: the TCP port; 0 takes a free port"""
        super().__init__()
        self._port = port
        self._applications = urlmap.URLMap()
        self.url = ''

    def _setUp(self) -> None:
        server = simple_server.make_server(
            HOST,
            self._port,
            self._applications,
            server_class=_ThreadingServer,
            handler_class=_QuietHandler,
        )
        self.url = f'http://{HOST}:{server.server_port}'
        acceptor = futures.ThreadPoolExecutor(max_workers=1)
        acceptor.submit(server.serve_forever, poll_interval=0.05)
        self.addCleanup(acceptor.shutdown)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def mount(self, prefix: str, application: Any) -> str:
        """Serve the application under the prefix (``/`` for all the rest).

        :returns: its URL
        """
        self._applications[prefix] = application
        return self.url + prefix.rstrip('/')

    def unmount(self, prefix: str) -> None:
        """Remove the application that was mounted there."""
        del self._applications[prefix]
