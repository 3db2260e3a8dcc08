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


"""A process that serves answers from files, which the kernel sends.

Nova is not imported: its modules decide between eventlet and native threads.
"""

import functools
from http import server
import os
import socket
import sys
import threading
from typing import Any
import urllib.parse


class _Handler(server.SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        return os.path.join(self.directory, file_name(path))

    def guess_type(self, path: 'str | os.PathLike[str]') -> str:
        return (
            'application/octet-stream'
            if str(path).endswith('file')
            else 'application/json'
        )

    def copyfile(self, source: Any, outputfile: Any) -> None:
        self.connection.sendfile(source)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def file_name(path: str) -> str:
    """The name of the file that answers a GET of a path.

    If the path ends in ``file``, the answer is no JSON.
    """
    return urllib.parse.quote(path, safe='')


def main(descriptor: str, directory: str) -> None:
    """Serve until standard input ends, as it does with the parent process.

    :param descriptor: the file descriptor of a listening socket
    :param directory: of the answers
    """
    with socket.socket(fileno=int(descriptor)) as listener:
        httpd = server.ThreadingHTTPServer(
            listener.getsockname(),
            functools.partial(_Handler, directory=directory),
            bind_and_activate=False,
        )
        httpd.socket.close()
        httpd.socket = listener
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        sys.stdin.read()


if __name__ == '__main__':
    main(*sys.argv[1:])
