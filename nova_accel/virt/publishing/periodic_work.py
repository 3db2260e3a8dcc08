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

"""A worker that takes the same steps from time to time.

A periodic task of Nova would wait for slow hardware and for the API. This
worker waits in a thread of its own.
"""

from collections.abc import Callable
from collections.abc import Sequence
import threading
import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import nova_releases
from nova_accel.model import finding
from nova_accel.model import host_findings

LOG = logging.getLogger(__name__)

#: A sentence for the log that says what a failure means, and the step.
Step = tuple[str, Callable[[], None]]


class Cycle:
    """The cycles of one host, one at a time.

    :param interval_s: seconds from the start of a cycle to the next start
    :param findings: gets the steps that fail
    """

    def __init__(
        self, interval_s: int, findings: host_findings.Findings
    ) -> None:
        self._interval_s = interval_s
        self._findings = findings
        self._steps: Sequence[Step] = ()
        self._started_at = float('-inf')
        self._idle = threading.Event()
        self._idle.set()
        self._is_asked = False
        self._lock = threading.Lock()

    def begin(self, steps: Sequence[Step]) -> None:
        """Start the first cycle of these steps."""
        self._steps = steps
        self.hurry()

    def hurry(self) -> None:
        """Start a cycle now, or after the one that runs."""
        self.start(at_once=True)

    def start(self, at_once: bool = False) -> None:
        """Have a worker take the steps, if the interval is over.

        :param at_once: do not wait for the interval; if a cycle is running,
            another one follows it
        """
        with self._lock:
            due = time.monotonic() - self._started_at >= self._interval_s
            if not self._idle.is_set():
                self._is_asked |= at_once
                return
            if not (due or at_once):
                return
            self._idle.clear()
        try:
            nova_releases.spawn(self._work)
        except RuntimeError as error:
            # Nova ends its threads before its last tasks, such as a delete.
            self._idle.set()
            LOG.info(
                'The accelerators of this host are not reported any more: %s',
                error,
            )

    def _work(self) -> None:
        while True:
            self._started_at = time.monotonic()
            try:
                self.run()
            except BaseException:
                # An error that ends this thread must not end later cycles.
                self._idle.set()
                raise
            with self._lock:
                if not self._is_asked:
                    self._idle.set()
                    return
                self._is_asked = False

    def run(self) -> None:
        """Take all steps, also after one that fails."""
        failed = []
        for fault, step in self._steps:
            try:
                step()
            except exceptions.ServiceUnavailable as error:
                # That is no fault of the host.
                LOG.warning('%s, trying again later: %s', fault, error)
            except exceptions.AcceleratorError as error:
                LOG.warning('%s, trying again later: %s', fault, error)
                failed.append(f'{fault}: {error}')
            except Exception as error:
                LOG.exception('%s, trying again later', fault)
                failed.append(f'{fault}: {error!r}')
        self._findings.put(
            'steps',
            (
                finding.Finding(finding.Kind.NOT_DONE, words)
                for words in failed
            ),
        )
