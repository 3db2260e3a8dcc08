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

"""One programming of a region: its file, its card's lock, and its record.

A bitstream is fetched first. Its card is locked while the region is
programmed, and only then the bitstream is pinned in the cache: programmings
that wait for a card leave the cache to others. The history has how each
programming began and ended.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import datetime
import functools
import threading
import time
from typing import Any

from oslo_concurrency import lockutils
from oslo_log import log as logging
from oslo_utils import timeutils
from oslo_utils import uuidutils

from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.model import naming
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.programming import programming_history
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_target

LOG = logging.getLogger(__name__)

#: A driver gets this much more time to raise its own error about the timeout.
_GRACE_S = 5

#: Fetches a bitstream unless it is here; its file is pinned during the body.
Fetch = Callable[
    [], contextlib.AbstractContextManager[bitstream_cache.Fetched]
]


class Job:
    """A job that is begun for a server, and then awaited or abandoned.

    :param deadline: of ``time.monotonic()``
    :param is_stopped: whether the guest of the asker does not run
    """

    def __init__(
        self,
        target: region_target.Target,
        asker: programming_record.Asker,
        deadline: float,
        is_stopped: bool = False,
    ) -> None:
        self.target = target
        self.asker = asker
        self.deadline = deadline
        self.is_stopped = is_stopped
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
        left_s = self._left_s()
        if not self._future.done():
            LOG.info('Waiting for %s, at most %.0f s', self.target, left_s)
        try:
            self._future.result(left_s)
        except TimeoutError as error:
            raise exceptions.DeviceError(
                f'{self.target} is not programmed in time'
            ) from error

    @contextlib.contextmanager
    def touching(self) -> Iterator[None]:
        """Let the body touch the card, unless no one waits for it.

        :raises DeviceError: as :meth:`check_wanted`
        """
        with self._touching:
            self.check_wanted()
            yield

    def check_wanted(self) -> None:
        """:raises DeviceError: it has been abandoned, or has no time left."""
        if self._is_abandoned:
            raise exceptions.DeviceError(
                f'{self.target} is not programmed: its server is given up'
            )
        region_target.left_s(self.deadline)

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


def wait_for(jobs: Iterable[Job]) -> None:
    """Wait for jobs; if one fails, the others are abandoned.

    :raises AcceleratorError: as :meth:`Job.wait`
    """
    jobs = tuple(jobs)
    try:
        for job in jobs:
            job.wait()
    finally:
        abandon(jobs)


def abandon(jobs: Iterable[Job]) -> None:
    """Abandon jobs, and wait for those that touch their card already."""
    jobs = tuple(jobs)
    for job in jobs:
        job.give_up()
    for job in jobs:
        job.settle()


class Jobs:
    """Does the jobs of one host."""

    def __init__(
        self,
        node_uuid: str,
        regions: host_regions.Regions,
        users: region_target.Users,
        history: programming_history.History,
    ) -> None:
        self._node_uuid = node_uuid
        self._regions = regions
        self._users = users
        self._history = history

    def card_locked(
        self, job: Job
    ) -> contextlib.AbstractContextManager[object]:
        """Lock a card, of which only one region is programmed at a time."""
        return self._locked(job.target.device.name)

    def _locked(
        self, *names: object
    ) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(
            '-'.join(map(str, ('nova_accel', self._node_uuid, *names)))
        )

    def check_free(self, job: Job) -> None:
        """Make sure that the region of a job may be programmed.

        :raises AcceleratorError: as :meth:`.region_target.Users.check_free`
        """
        self._users.check_free(job.target, job.asker, job.is_stopped)

    def held(
        self, job: Job, bitstream: fpga_bitstream.Bitstream
    ) -> programmable.Contents | None:
        """The contents of the region, if it holds the bitstream.

        The job's instance is then served with them. The card is locked.
        """
        contents = self._regions.known(job.target).contents
        if contents is None or contents.bitstream_id != bitstream.id:
            return None
        return self._regions.serve(
            job.target, job.asker.instance_uuid, bitstream
        )

    def do(
        self,
        job: Job,
        bitstream: fpga_bitstream.Bitstream,
        fetch: Fetch,
        is_repeated: bool = False,
        recorded: programming_record.Asker | None = None,
    ) -> programmable.Contents:
        """Fetch a bitstream and program a region with it.

        :param is_repeated: program the region even if it holds the bitstream
        :param recorded: the asker to record, who is then served with the
            region; by default the job's asker
        :raises AcceleratorError: the region does not hold it.
        """
        self.check_free(job)
        record = self._record(job, bitstream, recorded or job.asker)
        try:
            self._fetch_unpinned(job, fetch)
            with self.card_locked(job):
                # Another thread may have programmed it meanwhile.
                contents = None if is_repeated else self.held(job, bitstream)
                if contents is not None:
                    return contents
                with fetch() as file, job.touching():
                    return self._program(job, record, bitstream, file)
        except exceptions.AcceleratorError as error:
            self._history.note(record.ended(_now(), str(error)))
            raise

    def _record(
        self,
        job: Job,
        bitstream: fpga_bitstream.Bitstream,
        asker: programming_record.Asker,
    ) -> programming_record.Record:
        return programming_record.Record(
            uuidutils.generate_uuid(),
            naming.derived_uuid(self._node_uuid, job.target.device.name),
            job.target.region.name,
            bitstream.id,
            asker,
            _now(),
        )

    def _fetch_unpinned(self, job: Job, fetch: Fetch) -> None:
        """Fetch a file before its card is locked, for which servers wait.

        For one asker only one is fetched for a region at a time. A file that
        leaves the cache meanwhile is fetched again.

        :raises DeviceError: no one waits for the job any more.
        """
        asker = job.asker
        with self._locked(
            *job.target.key, asker.project_id, asker.instance_uuid
        ):
            job.check_wanted()
            with fetch():
                pass

    def _program(
        self,
        job: Job,
        record: programming_record.Record,
        bitstream: fpga_bitstream.Bitstream,
        file: bitstream_cache.Fetched,
    ) -> programmable.Contents:
        self._history.note(record)
        LOG.info('Programming %s with %s', job.target, bitstream)
        contents = self._regions.program(
            job.target,
            record,
            bitstream,
            file.path,
            file.sha256,
            job.deadline,
            functools.partial(
                self._users.check_free, job.target, job.asker, job.is_stopped
            ),
        )
        now = _now()
        LOG.info(
            'Programmed %s with %s, %.1f s after it was begun',
            job.target,
            bitstream,
            (now - record.started_at).total_seconds(),
        )
        self._history.note(record.ended(now, None))
        return contents


def _now() -> datetime.datetime:
    return timeutils.utcnow(with_timezone=True)
