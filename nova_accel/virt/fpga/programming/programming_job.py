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

"""The job of a worker: one region of a server."""

from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import threading
import time
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import programming_record
from nova_accel.virt.fpga.regions import region_target

LOG = logging.getLogger(__name__)

#: A driver gets this much more time to raise its own error about the timeout.
_GRACE_S = 5


class Job:
    """A job that is begun for a server, and then awaited or abandoned.

    :param deadline: of ``time.monotonic()``
    """

    def __init__(
        self,
        target: region_target.Target,
        asker: programming_record.Asker,
        deadline: float,
    ) -> None:
        self.target = target
        self.asker = asker
        self.deadline = deadline
        self._future: futures.Future[Any] | None = None
        self._is_abandoned = False
        self._touching = threading.Lock()

    def run(self, future: futures.Future[Any]) -> None:
        """Set the worker's future, for which :meth:`wait` waits."""
        self._future = future

    def wait(self) -> None:
        """Wait for the worker.

        :raises DeviceError: the worker has not ended in time.
        :raises AcceleratorError: the worker failed.
        """
        if self._future is None:
            return
        if not self._future.done():
            LOG.info(
                'Waiting for %s, for at most %.0f s',
                self.target,
                self._left_s(),
            )
        try:
            self._future.result(self._left_s())
        except TimeoutError as error:
            raise exceptions.DeviceError(
                f'{self.target} is not programmed in time'
            ) from error

    @contextlib.contextmanager
    def touching(self) -> Iterator[None]:
        """Let the body touch the card, unless the job has been abandoned.

        :raises DeviceError: the job has been abandoned.
        """
        with self._touching:
            self.check_wanted()
            yield

    def check_wanted(self) -> None:
        """:raises DeviceError: the job has been abandoned."""
        if self._is_abandoned:
            raise exceptions.DeviceError(
                f'{self.target} is not programmed: its server is given up'
            )

    def give_up(self) -> None:
        """Abandon the job; a body that touches the card already goes on."""
        self._is_abandoned = True
        if self._future is not None:
            self._future.cancel()

    def settle(self) -> None:
        """Wait until no body touches the card any more."""
        if self._touching.acquire(timeout=self._left_s()):
            self._touching.release()

    def _left_s(self) -> float:
        return max(0.0, self.deadline - time.monotonic()) + _GRACE_S


def abandon(jobs: Iterable[Job]) -> None:
    """Abandon jobs, and wait for those that touch their card already."""
    jobs = tuple(jobs)
    for job in jobs:
        job.give_up()
    for job in jobs:
        job.settle()
