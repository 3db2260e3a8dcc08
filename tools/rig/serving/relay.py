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

"""A line to a server that can be cut.

It is a process between the server and its clients. When that ends, all
connections are cut and new ones are refused, as if the server were gone.
"""

import asyncio
import pathlib
import socket
import sys

import fixtures

from rig.serving import process

_HOST = '127.0.0.1'
_CHUNK = 65536


class Relay(fixtures.Fixture):
    """A port of the loopback that leads to a server.

    :param host: of the server, with ``port``
    :ivar port: the port that the clients use; it stays the same
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._server = host, port
        with socket.create_server((_HOST, 0)) as chosen:
            self.port: int = chosen.getsockname()[1]

    def _setUp(self) -> None:
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self.mend()

    def cut(self) -> None:
        """Cut all connections, and refuse others until it is mended."""
        self._process.stop()

    def mend(self) -> None:
        """Lead to the server, from now on or again.

        :raises ConfigurationError: another process has taken the port
        """
        host, port = self._server
        self._process = self.useFixture(
            process.Process(
                [
                    sys.executable,
                    '-m',
                    __name__,
                    str(self.port),
                    host,
                    str(port),
                ],
                self._directory / 'relay.log',
            )
        )
        self._process.wait_for(self._accepts)

    def _accepts(self) -> bool:
        try:
            socket.create_connection((_HOST, self.port)).close()
        except ConnectionRefusedError:
            return False
        return True


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def _serve(own_port: int, host: str, port: int) -> None:
    async def join(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            _pump(reader, far_writer), _pump(far_reader, writer)
        )

    server = await asyncio.start_server(join, _HOST, own_port)
    await server.serve_forever()


if __name__ == '__main__':
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
