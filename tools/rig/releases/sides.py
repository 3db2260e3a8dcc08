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

"""Processes of this release and of the one before, out of git's history."""

from collections.abc import Sequence
import os
import pathlib
import socket
import subprocess
import sys
import tarfile

import fixtures

from rig.serving import process

#: The last commit whose reports have no contract.
BEFORE = 'e9be744bd103b97d989f664257e3c58eeb02d62d'

_ROOT = pathlib.Path(__file__).parents[3]


class NoHistory(Exception):
    """There is no git, or its history does not go back so far."""


def export(directory: pathlib.Path) -> None:
    """Write the package of the release before into a directory.

    :raises NoHistory: it cannot be had here
    """
    path = directory / 'release.tar'
    try:
        with path.open('wb') as file:
            subprocess.run(
                ['git', 'archive', BEFORE, 'nova_accel', 'etc'],
                cwd=_ROOT,
                stdout=file,
                stderr=subprocess.PIPE,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistory(str(error)) from error
    with tarfile.open(path) as archive:
        archive.extractall(directory, filter='data')


def free_port() -> int:
    """A port of the loopback where nothing listens."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        port: int = server.getsockname()[1]
    return port


class Side(fixtures.Fixture):
    """The API or a host of a release, until it is stopped.

    :param name: of the module beside this one
    :param release: the directory of its package; None for this release
    :param arguments: further ones after the port
    :ivar url: where it listens
    """

    def __init__(
        self,
        name: str,
        release: pathlib.Path | None,
        port: int,
        arguments: Sequence[str],
    ) -> None:
        super().__init__()
        self._name = name
        self._release = release or _ROOT
        self._port = port
        self._arguments = arguments
        self.url = f'http://127.0.0.1:{port}'

    def _setUp(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        script = pathlib.Path(__file__).with_name(f'{self._name}.py')
        self._process = self.useFixture(
            process.Process(
                [sys.executable, script, str(self._port), *self._arguments],
                directory / 'log',
                {
                    'PYTHONPATH': str(self._release),
                    'PYTHONSAFEPATH': '1',
                    'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'True',
                },
            )
        )
        self._process.wait_for(self._listens)

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(('127.0.0.1', self._port)) == os.EX_OK

    def stop(self) -> None:
        """End it, as an upgrade does."""
        self._process.stop()

    def log(self) -> str:
        """What it has logged."""
        return self._process.log.read_text()
