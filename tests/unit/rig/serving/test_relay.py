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

import socket
import threading

from oslotest import base

from rig.serving import relay


class TestRelay(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self.server.close)
        threading.Thread(target=self.echo, daemon=True).start()
        self.relay = self.useFixture(relay.Relay(*self.server.getsockname()))

    def echo(self) -> None:
        while True:
            try:
                connection, _address = self.server.accept()
            except OSError:
                return
            threading.Thread(
                target=self.echo_to, args=(connection,), daemon=True
            ).start()

    def echo_to(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(10):
                connection.sendall(data)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(
            ('127.0.0.1', self.relay.port), timeout=30
        )
        self.addCleanup(connection.close)
        return connection

    def assert_echoes(self, connection: socket.socket) -> None:
        connection.sendall(b'hello')
        self.assertEqual(b'hello', connection.recv(10))

    def test_it_is_cut_and_mended(self) -> None:
        connection = self.connect()
        self.assert_echoes(connection)
        self.assert_echoes(self.connect())
        self.relay.cut()
        self.assertEqual(b'', connection.recv(10))
        self.assertRaises(ConnectionRefusedError, self.connect)
        self.relay.mend()
        self.assert_echoes(self.connect())
