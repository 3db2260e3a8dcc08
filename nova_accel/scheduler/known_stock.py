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

"""The accelerators of all hosts, as this nova-scheduler knows them.

The request filter reads what has changed, by one statement. The host filter
and the weigher of the same request then use what is known.
"""

from collections.abc import Callable
import contextlib
import datetime
import math
import threading
import time
from typing import Any

from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions
from nova_accel.db import bitstream_demand
from nova_accel.db import free_units
from nova_accel.db.sql import engine
from nova_accel.db.sql import time_limits
from nova_accel.model.fpga import bitstream_stock
from nova_accel.model.units import known_units

LOG = logging.getLogger(__name__)

#: The age in seconds of a reading by which a shortage is judged. Threads that
#: ask while another one waits for the database share the next reading.
FRESH_S = 0.0

#: The age of one by which hosts are chosen. Placement may take as long to
#: answer after the request filter.
DECIDING_S = 60.0

#: Seconds after which the demand for bitstreams is read again.
_DEMAND_S = 60.0

#: Seconds after a failure in which the database is not asked again.
_PAUSE_S = 5.0

#: Seconds after which everything is read again. That ends what no one
#: expects: a change that no statement of this release has made, or one that
#: became visible later than any transaction may last.
_ALL_AFTER_S = 3600.0

#: The same if a host may have been forgotten.
_DOUBTFUL_S = 300.0


class KnownStock:
    """The known units, and when they were read. Threads may share it.

    :param clock: seconds that never go back
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._is_away = False
        self._forget(None)

    def _forget(self, source: Any) -> None:
        self._known = known_units.KnownUnits()
        # The time of the database's clock at the last reading, and when that
        # was by ours.
        self._since: datetime.datetime | None = None
        self._read_at = self._all_by = self._demand_by = -math.inf
        self._paused_until = -math.inf
        self._source = source

    def current(self, max_age_s: float) -> known_units.KnownUnits | None:
        """The known units, read again if they were read longer ago.

        :returns: None while the database gives no answer
        """
        try:
            return self._current(engine.manager(), self._clock() - max_age_s)
        except (
            exceptions.AcceleratorError,
            db_exc.DBError,
            sa_exc.SQLAlchemyError,
        ) as fault:
            self._note_failure(fault)
            return None

    def _current(
        self, source: Any, after: float
    ) -> known_units.KnownUnits | None:
        """The units as they were after a time, or later.

        :param source: the database, so that another one is noticed
        """
        if self._is_read(source, after):
            return self._known
        with self._lock:
            # Another thread may have read meanwhile, or failed to.
            if self._is_read(source, after):
                return self._known
            if source is not self._source:
                self._forget(source)
            now = self._clock()
            if now < self._paused_until:
                return None
            self._paused_until = now + _PAUSE_S
            self._read(now)
            if now >= self._demand_by:
                self._read_demand()
                self._demand_by = now + _DEMAND_S
            self._paused_until = now
            self._note_success()
            return self._known

    def _is_read(self, source: Any, after: float) -> bool:
        return source is self._source and self._read_at > after

    def _read(self, now: float) -> None:
        before = self._since if now < self._all_by else None
        # All of a large cloud may take longer than others should wait.
        with (
            contextlib.nullcontext() if before is None else time_limits.brief()
        ):
            changes = free_units.read(before)
        self._since = changes.at
        if before is None:
            self._all_by = now + _ALL_AFTER_S
        else:
            passed_s = (changes.at - before).total_seconds()
            if abs(passed_s - (now - self._read_at)) > free_units.STEP_S:
                LOG.warning(
                    'The clock of the database of accelerators was set: '
                    'everything is read again'
                )
                self._all_by = now
            elif self._known.silent - changes.silent - changes.of_hosts.keys():
                # They report again, or "nova-accel-manage host forget" has
                # deleted them.
                self._all_by = min(self._all_by, now + _DOUBTFUL_S)
        self._known.apply(changes, now)
        self._read_at = now

    def _read_demand(self) -> None:
        """It matters only where regions could be programmed anew."""
        idle = self._known.idle_regions()
        with time_limits.brief():
            demand = bitstream_demand.read() if idle else {}
        self._known.demand = bitstream_stock.missed(demand, idle)

    def _note_failure(self, fault: Exception) -> None:
        if not self._is_away:
            LOG.warning(
                'Hosts are chosen without regard to their accelerators, '
                'because nova-scheduler cannot read the database that '
                '[nova_accel_database] connection names: %s',
                fault,
            )
        self._is_away = True

    def _note_success(self) -> None:
        if self._is_away:
            LOG.info('The database of accelerators can be read again')
        self._is_away = False


_STOCK = KnownStock()


def current(
    max_age_s: float = DECIDING_S,
) -> known_units.KnownUnits | None:
    """As :meth:`KnownStock.current`, for all threads of this process."""
    return _STOCK.current(max_age_s)
