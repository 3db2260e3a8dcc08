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

"""Processes that run as long as a test or a benchmark."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import os
import pathlib
import subprocess
import time

import fixtures

from nova_accel import exceptions
from rig.serving import usage

_STOP_S = 15


def run(*command: str | os.PathLike[str]) -> None:
    """Run a program to its end.

    :raises ConfigurationError: it fails; the text has its output
    """
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise exceptions.ConfigurationError(
            f'{" ".join(map(str, command))}: {done.stdout}{done.stderr}'
        )


class StartedFixture(fixtures.Fixture):
    """Prepares in ``_setUp``, starts in :meth:`start`, and cleans up."""

    def setUp(self) -> None:
        super().setUp()
        # The fixtures library turns any exception of _setUp into its own.
        try:
            self.start()
        except BaseException:
            self.cleanUp()
            raise

    def start(self) -> None:
        """Start; its exceptions reach the user of the fixture unchanged."""
        raise NotImplementedError


class Process(fixtures.Fixture):
    """A process, until the cleanup or until it is stopped.

    :param log: the file for its output
    :param environment: is added to that of this process
    :param descriptors: files of this process that it inherits
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        log: pathlib.Path,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self._command = command
        self.log = log
        self._environment = environment or {}
        self._descriptors = descriptors

    def _setUp(self) -> None:
        with self.log.open('wb') as log:
            self._process = subprocess.Popen(
                self._command,
                pass_fds=self._descriptors,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.addCleanup(self.stop)

    def wait_for(
        self, condition: Callable[[], bool], seconds: float = 90
    ) -> None:
        """Wait until the condition is true.

        :raises ConfigurationError: the process has ended, or the time is
            over; the text has its output
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            if condition():
                return
            time.sleep(0.1)
        raise exceptions.ConfigurationError(
            f'{pathlib.Path(self._command[0]).name} does not start: '
            f'{self.log.read_text()}'
        )

    def stop(self) -> int:
        """Ask the process to end, and kill it if it does not.

        :returns: its exit status
        """
        self._process.terminate()
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def usage(self) -> usage.Usage:
        """What the process and its children use."""
        return usage.of_family(self._process.pid)
