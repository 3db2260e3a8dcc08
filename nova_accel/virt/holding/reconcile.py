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


"""A periodic comparison of what this host holds with what exists.

Nova's operations can end without a call of the driver: nova-compute was down,
a step failed, or a host was reinstalled. The rules for repairs are in
:mod:`nova_accel.model.binding_repairs`. The number of requests does not grow
with the number of instances. Placement gets one for each of our providers.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import time

from oslo_log import log as logging

from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.host import all_guests
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import guest_findings
from nova_accel.model.providers import counted
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import counting
from nova_accel.virt.holding import mdevs
from nova_accel.virt.holding import reconcile_bindings
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

_Kind = finding.Kind

_NOT_COMPARED = (
    'The accelerators of this host are not compared with what Nova has'
)
_GUESTS = 'guests'
_GUESTS_NOT_COMPARED = 'Guests are not compared'
_MDEVS_NOT_COMPARED = 'Mediated devices are not compared'
_ALLOCATIONS_NOT_COMPARED = 'Allocations are not compared'
_NOT_COUNTED = 'What instances hold is not compared with allocations'

#: Seconds until a pass is repeated that has left something to repair. Each
#: further time it takes twice as long.
_SOON_S = 10


class Reconciler:
    """Repairs one host, from time to time.

    :param service_host: the host's name in Nova's RPC
    :param interval_s: seconds between two passes. While a move has bindings
        here, or clients have bound ARQs that no one has come for, each call
        compares the bindings. While something is wrong with a guest, each call
        looks at it again
    :param hurry: has a report made soon
    """

    def __init__(
        self,
        service_host: str,
        interval_s: int,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        guests: all_guests.AllGuests,
        unused: mdevs.UnusedMdevs,
        current: host_view.CurrentState,
        hurry: Callable[[], None],
    ) -> None:
        self._service_host = service_host
        self._interval_s = interval_s
        self._held = attachments.held
        self._guests = guests
        self._mdevs = unused
        self._current = current
        self._findings = current.findings
        self._hurry = hurry
        self._bindings = reconcile_bindings.BindingReconciler(
            service_host, api, attachments, guests, current
        )
        self._counting = counting.Counting(
            service_host, attachments.held, current
        )
        self._compared_at = time.monotonic()
        self._wait_s = interval_s
        self._soon_s = _SOON_S
        # The findings of the last look at the guests.
        self._suspected: frozenset[finding.Finding] = frozenset()

    def run(self) -> None:
        """Make a pass, if it is time for one.

        Does not raise: a comparison or repair that fails is left to the next
        pass.
        """
        with retries.retry_later(_NOT_COMPARED) as tried:
            if self._is_due():
                self._repair_and_tell()
                self._compared_at = time.monotonic()
                self._wait_s = self._next_wait_s()
            elif self._current.uncounted is None:
                self.count()
            elif self._suspected:
                self._compare_guests(self._bindings.repair(()))
            elif self._bindings.are_unsettled():
                self._bindings.repair(())
        self._findings.put('comparison', tried.failure(_NOT_COMPARED))

    def _is_due(self) -> bool:
        wait_s = self._wait_s
        if self._current.is_doubtful:
            wait_s = min(wait_s, _SOON_S)
        return time.monotonic() - self._compared_at >= wait_s

    def _next_wait_s(self) -> int:
        if not self._counting.is_unfinished:
            self._soon_s = _SOON_S
            return self._interval_s
        wait_s = min(self._interval_s, self._soon_s)
        self._soon_s = 2 * wait_s
        return wait_s

    def count(self) -> None:
        """Find what has lost its allocation, and nothing else.

        :raises ServiceUnavailable, MessagingException: a service gave no
            answer.
        """
        if not self._held.bindings():
            self._current.uncounted = counted.Units()
            return
        self._put_count(self._counting.look())

    def _put_count(self, seen: counting.Seen) -> None:
        self._put(
            'uncounted', _NOT_COUNTED, lambda: self._counting.count(seen)
        )

    def _repair_and_tell(self) -> None:
        before = self._findings.all()
        # A doubt that comes up during the pass is for the next one.
        self._current.is_doubtful = False
        try:
            self.repair()
        except BaseException:
            self._current.is_doubtful = True
            raise
        # Not after each call: words that change would never let it rest.
        if self._findings.all() != before:
            self._hurry()

    def repair(self) -> None:
        """Make a whole pass.

        :raises AcceleratorError: a service gave no answer; nothing is done.
        :raises NovaException, MessagingException: Nova gave no answer;
            nothing is done.
        """
        # Mediated devices are listed first: each is journaled before it is
        # made, so the journal that is read later has them all.
        existing = self._mdevs.existing()
        view = self._current.view
        seen = self._counting.look()
        host = self._bindings.repair(seen.instance_uuids)
        self._compare_guests(host)
        self._put(
            'mdevs',
            _MDEVS_NOT_COMPARED,
            lambda: self._mdevs.destroy_orphans(
                existing,
                view.handles,
                {arq.handle.uuid for each in host.listed for arq in each.arqs},
            ),
        )
        self._put(
            'allocations',
            _ALLOCATIONS_NOT_COMPARED,
            lambda: self._counting.take_leftovers(seen, host),
        )
        self._put_count(seen)
        self._findings.end_round()

    def _put(
        self,
        part: str,
        sentence: str,
        compare: Callable[[], Iterable[finding.Finding]],
    ) -> None:
        """Note what a comparison finds, and its failure if it fails.

        If a service does not answer, what was found before stays.

        :param sentence: says what a failure means
        """
        found: list[finding.Finding] = []
        with retries.retry_later(sentence) as tried:
            for each in compare():
                found.append(each)
        if not tried.is_done and tried.fault is None:
            found += self._findings.of(part)
        self._findings.put(part, found + tried.failure(sentence))

    def _compare_guests(self, host: binding_repairs.HostBindings) -> None:
        self._put(_GUESTS, _GUESTS_NOT_COMPARED, lambda: self._of_guests(host))

    def _of_guests(
        self, host: binding_repairs.HostBindings
    ) -> Iterator[finding.Finding]:
        """Find what is wrong with guests, and was so a moment ago.

        Nova's word is asked again only if something seems to be wrong.
        """
        guests = guest_findings.SeenGuests(
            self._guests.running(), self._guests.devices()
        )
        found = frozenset(guest_findings.find(host, guests))
        if found:
            uuids = {uuid for each in found if (uuid := each.instance_uuid)}
            found &= frozenset(
                guest_findings.find(self._look_again(host, uuids), guests)
            )
        suspected, self._suspected = self._suspected, found
        known = self._findings.of(_GUESTS)
        for each in found:
            if each.kind in guest_findings.SURE or each in suspected:
                if each not in known:
                    LOG.warning(
                        'Something is wrong with the guest of instance %s: %s',
                        each.instance_uuid,
                        each.words,
                        instance_uuid=each.instance_uuid,
                    )
                yield each

    def _look_again(
        self, host: binding_repairs.HostBindings, uuids: Collection[str]
    ) -> binding_repairs.HostBindings:
        return dataclasses.replace(
            host,
            held=self._held.bindings(),
            servers=servers.of_host(self._service_host, uuids),
        )
