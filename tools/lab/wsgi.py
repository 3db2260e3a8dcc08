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

"""WSGI applications, each in a uWSGI of its own."""

import contextlib
import http.client
import os
import pathlib

from lab import processes
from lab import settings


def start(
    name: str, port: int, module: str, threads: int = 4, **environment: object
) -> None:
    """Start an application with one worker process."""
    _start(
        name,
        [
            f'--http-socket=127.0.0.1:{port}',
            f'--module={module}',
            f'--threads={threads}',
            '--processes=1',
            '--master',
        ],
        environment,
    )


def start_file(
    name: str, path: pathlib.Path, *arguments: str, **environment: object
) -> None:
    """Start an application as a file of the installation guide says.

    :param path: the file, in the form of uWSGI's ini
    """
    _start(name, [f'--ini={path}', *arguments], environment)


def wait(name: str, port: int, seconds: float = 90) -> None:
    """Wait until it answers whatever."""

    def answers() -> bool:
        processes.process(name)
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=5)
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            connection.request('GET', '/')
            connection.getresponse()
            return True
        return False

    processes.wait_for(name, seconds, answers)


def _start(
    name: str, arguments: list[str], environment: dict[str, object]
) -> None:
    # Clients that keep a connection alive see it reset, as uWSGI's own HTTP
    # socket closes it without a word.
    processes.start(
        name,
        [
            settings.BIN / 'uwsgi',
            *arguments,
            f'--virtualenv={settings.VENV}',
            '--need-app',
            '--lazy-apps',
            '--die-on-term',
            '--enable-threads',
            '--thunder-lock',
            '--buffer-size=65535',
            '--http-chunked-input',
            '--add-header=Connection: close',
            '--disable-logging',
        ],
        {
            'PYTHONPATH': os.environ['PYTHONPATH'],
            **{key: str(value) for key, value in environment.items()},
        },
    )
