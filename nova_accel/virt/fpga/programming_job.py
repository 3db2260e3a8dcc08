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

"""One region of a server that a worker is seeing to."""

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import threading
import time
from typing import Any

import futurist
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import programming
from nova_accel.virt.fpga import region_target

LOG = logging.getLogger(__name__)

#: A driver is given so much more time to say itself that it took too long.
_GRACE_S = 5


class Job:
    """Begun for a server, and awaited or abandoned.

    :param deadline: of ``time.monotonic()``
    """

    def __init__(self, target: region_target.Target, asker: programming.Asker,
                 deadline: float) -> None:
        self.target = target
        self.asker = asker
        self.deadline = deadline
        self._future: futurist.Future[Any] | None = None
        self._is_abandoned = False
        self._touching = threading.Lock()

    def run(self, future: 'futurist.Future[Any]') -> None:
        """Have it awaited."""
        self._future = future

    def wait(self) -> None:
        """Wait for the worker.

        :raises DeviceError: it has not ended in time.
        :raises AcceleratorError: it failed.
        """
        if self._future is None:
            return
        if not self._future.done():
            LOG.info('Waiting for %s, for at most %.0f s', self.target,
                     self._left_s())
        try:
            self._future.result(self._left_s())
        except TimeoutError as error:
            raise exceptions.DeviceError(
                f'{self.target} is not programmed in time') from error

    @contextlib.contextmanager
    def touching(self) -> Iterator[None]:
        """The body touches the card; not if the job has been abandoned.

        :raises DeviceError: it has.
        """
        with self._touching:
            if self._is_abandoned:
                raise exceptions.DeviceError(
                    f'{self.target} is not programmed: its server is given '
                    'up')
            yield

    def give_up(self) -> None:
        """Have the card touched no more, unless it is being touched."""
        self._is_abandoned = True
        if self._future is not None:
            self._future.cancel()

    def settle(self) -> None:
        """Wait until the card is not touched any more."""
        if self._touching.acquire(timeout=self._left_s()):
            self._touching.release()

    def _left_s(self) -> float:
        return max(0.0, self.deadline - time.monotonic()) + _GRACE_S


def abandon(jobs: Iterable[Job]) -> None:
    """Touch their cards no more; wait for what has been begun."""
    jobs = tuple(jobs)
    for job in jobs:
        job.give_up()
    for job in jobs:
        job.settle()
