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

"""Warn if Placement has left out hosts that could serve a request.

Nova asks Placement for a limited number of allocation candidates. A few hosts
with many devices may fill the answer. Then Nova chooses among these, and
nothing tells that there are others.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import threading
import time

from nova.scheduler import host_manager
from oslo_log import log as logging

from nova_accel import conf
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: Seconds after which full answers are looked at again, and after which there
#: is another warning.
_LOOK_S = 60.0
_WARN_S = 3600.0

#: Other filters may have dropped hosts of a full answer: this part of the
#: limit counts as full.
_FULL = 0.9


class TruncationWatch:
    """Looks at answers of Placement. Threads may share it.

    :param clock: seconds that never go back
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next_look = 0.0

    def look(
        self,
        hosts: Sequence[host_manager.HostState],
        groups: Iterable[device_profile.Group],
        known: known_units.KnownUnits | None,
    ) -> None:
        """Warn if an answer is full, and more hosts could serve the groups.

        It costs next to nothing until a minute has passed, or an hour since
        the last warning.

        :param hosts: the hosts of the answer, with their candidates
        :param known: None if nothing is known
        """
        if known is None or self._clock() < self._next_look:
            return
        limit = CONF.scheduler.max_placement_results
        candidates = sum(len(host.allocation_candidates) for host in hosts)
        if candidates < _FULL * limit:
            return
        with self._lock:
            now = self._clock()
            if now < self._next_look:
                return
            self._next_look = now + _LOOK_S
            could = known.count_hosts(groups)
            if could > len(hosts):
                self._next_look = now + _WARN_S
                self._warn(len(hosts), could, limit)

    def _warn(self, seen: int, could: int, limit: int) -> None:
        LOG.warning(
            'Placement has left out hosts: %(could)d have the accelerators of '
            'a request free, and the %(limit)d allocation candidates that '
            'nova-scheduler asks for are of %(seen)d hosts. Set [placement] '
            'allocation_candidates_generation_strategy = breadth-first in the '
            'configuration of Placement, with max_allocation_candidates of at '
            'least the number of hosts. If that does not suffice, raise '
            '[scheduler] max_placement_results of nova-scheduler',
            {'could': could, 'limit': limit, 'seen': seen},
        )


_WATCH = TruncationWatch()


def look(
    hosts: Sequence[host_manager.HostState],
    groups: Iterable[device_profile.Group],
    known: known_units.KnownUnits | None,
) -> None:
    """As :meth:`TruncationWatch.look`, for all threads of this process."""
    _WATCH.look(hosts, groups, known)
