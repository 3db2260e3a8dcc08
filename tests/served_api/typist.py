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

"""Types commands ``openstack ...``, each in a process of its own.

A process of Python takes a second to import what the shell needs, far longer
than a command takes. So one process imports it, and each command is typed in a
child that it forks.
"""

import atexit
import contextlib
import functools
import io
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any
from typing import NamedTuple


class Typed(NamedTuple):
    """What a command has written, and its exit status."""

    status: int
    output: str
    errors: str


class Typist:
    """Has the shell imported, and waits for commands.

    :param paths: directories of packages that come before the installed ones
    """

    def __init__(self, *paths: pathlib.Path) -> None:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith('OS_')
        }
        self._process = subprocess.Popen(
            [sys.executable, '-P', __file__],
            env={
                **environment,
                'PYTHONPATH': os.pathsep.join(map(str, paths)),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.communicate)

    def type(self, *arguments: str, **environment: str) -> Typed:
        with tempfile.TemporaryDirectory() as directory:
            files = [pathlib.Path(directory) / name for name in ('1', '2')]
            status = self._ask([arguments, environment, list(map(str, files))])
            return Typed(status, *(file.read_text() for file in files))

    def _ask(self, command: list[Any]) -> int:
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None and answers is not None
        print(json.dumps(command), file=to, flush=True)
        return int(answers.readline())


@functools.cache
def with_packages(*paths: pathlib.Path) -> Typist:
    """The one of this process that has these packages."""
    return Typist(*paths)


def _main() -> None:
    from openstackclient import shell

    sys.argv = ['openstack']
    # The shell loads its commands when it is to show one.
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        shell.main(['accelerator', 'device', 'list', '--help'])
    logging.getLogger().handlers.clear()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            arguments, environment, files = json.loads(line)
            os.environ.update(environment)
            _write_to(*files)
            sys.exit(shell.main(arguments))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _write_to(*files: str) -> None:
    """Have the standard output, and that of errors, be files."""
    for descriptor, file in enumerate(files, 1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)


if __name__ == '__main__':
    _main()
