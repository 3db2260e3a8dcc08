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

"""The cleaning of units that guests gave back, before other guests get them.

The API knows which units are unclean, and says so in its orders. After a
restart the orders are all that is needed. Cleaning may take minutes or never
end, so it has threads of its own. Neither reports nor deletes wait for them.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from concurrent import futures
import dataclasses
import threading
import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.drivers import base
from nova_accel.host import all_guests
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_orders
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import holdings

LOG = logging.getLogger(__name__)

#: Seconds until a cleaning that failed is tried again. They double with each
#: further failure, up to the longest.
FIRST_RETRY_S = 60
LONGEST_RETRY_S = 3600


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """The end of a cleaning that a revision of the orders asked for."""

    revision: int
    fault: str | None


@dataclasses.dataclass(frozen=True)
class _Retry:
    """The next try of a cleaning that failed, at a monotonic time ``at``."""

    fault: str
    delay_s: int
    at: float


class Cleaner:
    """Cleans the units that the orders of one host name.

    :param workers: how many handles are cleaned at a time
    :param drivers: name -> device driver
    :param held: units that are held are not touched, whatever the orders say
    :param blank: cleans a region by another bitstream, the one that is named
        or the blank one, or raises DeviceError
    :param hurry: has a report made soon
    """

    def __init__(
        self,
        api: accelerator_api.AcceleratorApi,
        workers: int,
        current: host_view.CurrentState,
        drivers: Mapping[str, base.Driver],
        guests: all_guests.AllGuests,
        held: holdings.Holdings,
        blank: Callable[[attach_handle.AttachHandle, str | None], None],
        hurry: Callable[[], None],
    ) -> None:
        self._api = api
        self._current = current
        self._drivers = drivers
        self._guests = guests
        self._held = held
        self._blank = blank
        self._hurry = hurry
        self._executor = futures.ThreadPoolExecutor(workers)
        self._lock = threading.Lock()
        self._reports = 0
        # The keys are uuids of attach handles. A released handle has the
        # number of the report that came before its release.
        self._released: dict[str, int] = {}
        self._running: set[str] = set()
        self._outcomes: dict[str, _Outcome] = {}
        self._retries: dict[str, _Retry] = {}

    def released(self, arqs: Iterable[arq_types.Arq]) -> None:
        """Have the units of released ARQs cleaned soon."""
        uuids = self._current.view.cleaned.intersection(
            arq.handle.uuid for arq in arqs
        )
        if uuids:
            with self._lock:
                self._released |= dict.fromkeys(uuids, self._reports)
            self._hurry()

    @property
    def awaited(self) -> frozenset[str]:
        """The uuids of the handles released since the last orders."""
        with self._lock:
            return frozenset(self._released)

    def report(self) -> None:
        """Tell the API how cleaning went, before it is asked for orders.

        Otherwise the orders could call a unit unclean that is clean, and that
        a guest has got meanwhile.

        :raises ServiceUnavailable: the API may not know; it is told again.
        """
        with self._lock:
            self._reports += 1
            outcomes = dict(self._outcomes)
        by_revision: dict[int, dict[str, str | None]] = {}
        for uuid, outcome in outcomes.items():
            by_revision.setdefault(outcome.revision, {})[uuid] = outcome.fault
        for revision, faults in sorted(by_revision.items()):
            try:
                self._api.cleaning(
                    [uuid for uuid, fault in faults.items() if fault is None],
                    {
                        uuid: fault
                        for uuid, fault in faults.items()
                        if fault is not None
                    },
                    revision,
                )
            except (exceptions.NotFound, exceptions.Conflict) as error:
                # The next orders name the units that are still unclean.
                LOG.warning(
                    'How the cleaning of accelerators went is not noted: %s',
                    error,
                )
            with self._lock:
                for uuid in faults:
                    del self._outcomes[uuid]

    def go_on(self) -> None:
        """Start the cleanings of the orders that came after :meth:`tell`."""
        orders = self._current.orders
        if orders is None:
            return
        with self._lock:
            self._released = {
                uuid: report
                for uuid, report in self._released.items()
                if report >= self._reports
            }
            self._retries = {
                uuid: retry
                for uuid, retry in self._retries.items()
                if uuid in orders.uncleaned
            }
            now = time.monotonic()
            early = {
                uuid for uuid, retry in self._retries.items() if now < retry.at
            }
            view = self._current.view
            # A device that is gone at the moment is cleaned when it is back.
            due = view.handles.keys() & orders.uncleaned.difference(
                self._running, self._outcomes, early, self._held.handles()
            )
            self._running.update(due)
        for uuid in due:
            self._executor.submit(
                self._clean,
                view.handles[uuid],
                self._drivers[view.drivers[uuid]],
                orders,
            )

    def _clean(
        self,
        handle: attach_handle.AttachHandle,
        driver: base.Driver,
        orders: host_orders.Orders,
    ) -> None:
        fault = None
        try:
            # The journal may be lost, or the host had another name.
            self._guests.check_unused(handle)
            self._check_alone(handle)
            if handle.cleaning[:1] == ('program',):
                self._blank(handle, orders.stock.get(handle.uuid))
            else:
                driver.clean(handle)
        except exceptions.DeviceError as error:
            fault = str(error)
        except Exception as error:
            LOG.exception('The driver failed to clean %s', handle.address)
            fault = f'its driver failed: {error!r}'
        with self._lock:
            self._running.discard(handle.uuid)
            is_news = self._note(handle.uuid, _Outcome(orders.revision, fault))
        if fault is not None:
            LOG.warning(
                '%s is not clean and stays reserved, trying again later: %s',
                handle.address,
                fault,
            )
        if is_news:
            self._hurry()

    def _check_alone(self, handle: attach_handle.AttachHandle) -> None:
        """Check that no instance has the same by another function.

        :raises DeviceError: one has.
        """
        held = self._held.handles()
        for uuid, other in self._current.view.beside(handle.uuid).items():
            if uuid in held:
                raise exceptions.DeviceError(
                    f'an instance holds {other.address}, which leads to the '
                    f'same as {handle.address}: it is cleaned when that is '
                    'given back'
                )

    def _note(self, uuid: str, outcome: _Outcome) -> bool:
        """Note an outcome.

        :returns: whether the API has to be told
        """
        last = self._retries.pop(uuid, None)
        if outcome.fault is not None:
            delay_s = (
                FIRST_RETRY_S
                if last is None
                else min(2 * last.delay_s, LONGEST_RETRY_S)
            )
            self._retries[uuid] = _Retry(
                outcome.fault, delay_s, time.monotonic() + delay_s
            )
            if last is not None and last.fault == outcome.fault:
                return False
        self._outcomes[uuid] = outcome
        return True
