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


"""An image API in a process of its own, as a real Glance is.

In the process that downloads, it would compete with the download for the
interpreter's lock.
"""

import pathlib
import socket
import subprocess
import sys

import fixtures
import webob

from rig.serving import answers as served_answers
from rig.serving import wsgi_server
from rig.stubs import bitstreams
from rig.stubs import glance


class GlanceProcess(fixtures.Fixture):
    """A process on loopback that answers like the stub, until the cleanup.

    :ivar url: of its root
    """

    def _setUp(self) -> None:
        self._images = bitstreams.Images()
        self._directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        with socket.create_server((wsgi_server.HOST, 0)) as listener:
            host, port = listener.getsockname()
            self.url = f'http://{host}:{port}'
            process = subprocess.Popen(
                [
                    sys.executable,
                    '-m',
                    served_answers.__name__,
                    str(listener.fileno()),
                    self._directory,
                ],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )
        self.addCleanup(process.communicate)
        self._answer('/v2/schemas/image')

    def add(self, data: bytes) -> str:
        """Add a bitstream.

        :returns: its id
        """
        image_id = self._images.add(data)
        for path in (f'/v2/images/{image_id}', f'/v2/images/{image_id}/file'):
            self._answer(path)
        return image_id

    def _answer(self, path: str) -> None:
        stub = glance.Glance(self.url, self._images)
        (self._directory / served_answers.file_name(path)).write_bytes(
            webob.Request.blank(path).get_response(stub).body
        )
