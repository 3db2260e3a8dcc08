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

"""Workers of futurist that sleep until there is work, or they have to stop.

An idle worker asks from time to time whether it has to stop. So that pools
end quickly, Nova's test case has each worker ask a hundred times a second. A
quarter of a functional test's time went to that.
"""

import queue
from typing import Any

import fixtures
from futurist import _thread

#: Seconds after which an idle worker looks even if no one has woken it.
_IDLE_S = 1.0

_WAKE = object()


def _wait_for_work(worker: _thread.ThreadWorker) -> Any:
    worker.idle = True
    while True:
        try:
            work: Any = worker.work_queue.get(timeout=_IDLE_S)
        except queue.Empty:
            work = _WAKE
        else:
            if work is not _WAKE:
                worker.idle = False
                return work
            worker.work_queue.task_done()
        if worker._is_dying():
            raise _thread._Stopping


def _stop(worker: Any) -> None:
    worker.should_stop = True
    # The garbage collector calls this in any thread, also in one that is using
    # the queue: it would wait for itself. The worker looks by itself.
    if not worker.work_queue.mutex.locked():
        # Another worker of the pool may take it: it is woken by its own.
        worker.work_queue.put(_WAKE)


class WokenWorkers(fixtures.Fixture):
    """Lets idle workers sleep, and wakes those that have to stop."""

    def _setUp(self) -> None:
        for name, function in (
            ('_wait_for_work', _wait_for_work),
            ('stop', _stop),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'futurist._thread.ThreadWorker.{name}', function
                )
            )
