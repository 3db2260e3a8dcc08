#!/usr/bin/python3
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

"""What the machine is used through; it runs in the machine.

A connection to its port sends the length of a JSON object and the object, a
bash script and the seconds it may take, and is answered with another, its
output and its status. The arguments are the ports of the control plane: each
is the same one of the host's, so that addresses are the same on both sides.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile

_HOST = '10.0.2.2'
_PORT = 7
_TIMED_OUT = 124


async def run(script, seconds):
    """The status and the output of a script."""
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            'bash',
            '-c',
            script,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd='/',
        )
        try:
            status = await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            status = _TIMED_OUT
        output.seek(0)
        return status, output.read().decode(errors='replace')


async def serve(reader, writer):
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        request = json.loads(
            await reader.readexactly(int(await reader.readline()))
        )
        status, output = await run(request['script'], request['seconds'])
        answer = json.dumps({'status': status, 'output': output}).encode()
        writer.write(b'%d\n' % len(answer) + answer)
        await writer.drain()
    writer.close()


async def copy(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def forwarder(port):
    async def forward(reader, writer):
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(_HOST, port)
            await asyncio.gather(
                copy(reader, far_writer), copy(far_reader, writer)
            )
            far_writer.close()
        writer.close()

    return forward


async def main(ports):
    await asyncio.start_server(serve, '10.0.2.15', _PORT)
    for port in ports:
        await asyncio.start_server(forwarder(port), '127.0.0.1', port)
    await asyncio.Event().wait()


asyncio.run(main([int(port) for port in sys.argv[1:]]))
