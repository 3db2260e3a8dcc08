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

"""A thread that looks at Fabric Manager from time to time.

Fabric Manager waits one minute after its restart until it is told what is
active. Nova's periodic tasks may come later than that.
"""

from collections.abc import Callable
import threading

from oslo_log import log as logging

from nova_accel import exceptions

LOG = logging.getLogger(__name__)


class FabricWatch:
    """Takes one step from time to time, until it is ended.

    :param step: may raise; that is logged, when it is another error than the
        last
    """

    def __init__(self, step: Callable[[], None], interval_s: float) -> None:
        self._step = step
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._said = ''

    def begin(self) -> None:
        """Take the first step after the interval.

        The thread does not keep nova-compute from ending.
        """
        threading.Thread(target=self._work, daemon=True).start()

    def end(self) -> None:
        """Take no further step."""
        self._ended.set()

    def _work(self) -> None:
        while not self._ended.wait(self._interval_s):
            self.step()

    def step(self) -> None:
        """Take one step."""
        try:
            self._step()
            self._said = ''
        except exceptions.AcceleratorError as error:
            if str(error) != self._said:
                LOG.warning(
                    'The partitions of NVSwitches are not compared with the '
                    'guests, trying again later: %s',
                    error,
                )
            self._said = str(error)
        except Exception:
            LOG.exception(
                'The partitions of NVSwitches are not compared with the '
                'guests, trying again later'
            )
