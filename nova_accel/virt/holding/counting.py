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


"""Placement's count of what this host's instances hold, compared and healed.

The rules are in :mod:`nova_accel.model.providers.counted`. A unit that is held
and not allocated is reserved by the next update of the provider tree, see
:mod:`nova_accel.model.providers.occupancy`. It is allocated to its instance
again as soon as no operation of Nova is about to change the instance's
allocations.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from oslo_log import log as logging

from nova_accel.client import our_allocations
from nova_accel.client import servers
from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model.providers import counted
from nova_accel.model.providers import host_view
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import retries

LOG = logging.getLogger(__name__)

_Kind = finding.Kind


@dataclasses.dataclass(frozen=True)
class Seen:
    """The answer of Placement, and what was held before it was asked.

    ``allocated`` maps each consumer of the host's providers to what it has of
    them. ``consumers`` says what those are that hold nothing.
    """

    held: tuple[host_binding.Binding, ...] = ()
    allocated: Mapping[str, counted.Resources] = dataclasses.field(
        default_factory=dict
    )
    consumers: counted.Consumers = dataclasses.field(
        default_factory=counted.Consumers
    )

    @property
    def instance_uuids(self) -> set[str]:
        """The consumers, and the instances of those that are migrations."""
        return {
            *self.allocated,
            *map(self.consumers.instance_of, self.allocated),
        }


class Counting:
    """Compares one host, and remembers what was wrong in the last pass.

    :param service_host: the host's name in Nova's RPC
    """

    def __init__(
        self,
        service_host: str,
        held: holdings.Holdings,
        current: host_view.CurrentState,
    ) -> None:
        self._service_host = service_host
        self._held = held
        self._current = current
        self._leftovers: dict[str, str] = {}
        self._suspected: frozenset[str] = frozenset()

    @property
    def is_unfinished(self) -> bool:
        """Whether the next pass may have something to repair."""
        return bool(self._current.uncounted or self._leftovers)

    def look(self) -> Seen:
        """Read what Placement has allocated of this host's providers.

        :raises ServiceUnavailable: Placement gave no usable answer.
        :raises oslo_messaging.MessagingException: Nova does not answer
        """
        held = tuple(self._held.bindings())
        allocated = our_allocations.of_consumers(sorted(self._providers(held)))
        unknown = allocated.keys() - {each.instance_uuid for each in held}
        return Seen(
            held,
            allocated,
            counted.Consumers(servers.of_migrations(unknown)),
        )

    def _providers(
        self, held: tuple[host_binding.Binding, ...]
    ) -> frozenset[str]:
        """The providers of which something can be, or is, allocated."""
        return frozenset(
            provider.uuid
            for provider in self._current.view.layout.providers
            if provider.totals
        ).union(arq.device_rp_uuid for each in held for arq in each.arqs)

    def count(self, seen: Seen) -> list[finding.Finding]:
        """Have what is held allocated, or else reserved.

        :raises ServiceUnavailable, MessagingException: Placement or Nova gave
            no usable answer; the units are reserved.
        """
        held = counted.lasting(seen.held, self._held.bindings())
        left = counted.lacking(held, seen.allocated, seen.consumers)
        found = []
        try:
            # In this order: an operation that begins after Nova was asked
            # changes what has been read, and Placement refuses then.
            present = {uuid: our_allocations.read(uuid) for uuid in left}
            settled = self._settled(left) if left else frozenset()
            for uuid in sorted(left):
                mine = [each for each in held if each.instance_uuid == uuid]
                left[uuid] = self._still_lacking(mine, present[uuid], seen)
                if left[uuid]:
                    found += self._heal(present[uuid], left, uuid in settled)
        finally:
            self._current.uncounted = sum(left.values(), counted.Units())
            self._suspected = frozenset(uuid for uuid in left if left[uuid])
        return found

    def _settled(self, uuids: Collection[str]) -> frozenset[str]:
        """The instances with which Nova does nothing now."""
        roles: dict[str, list[arq_types.Role]] = {}
        for uuid, role in self._held.journaled():
            roles.setdefault(uuid, []).append(role)
        found = servers.of_host(self._service_host, uuids)
        return frozenset(
            uuid
            for uuid in uuids
            if counted.is_settled(
                found.get(uuid), roles.get(uuid, ()), self._service_host
            )
        )

    def _still_lacking(
        self,
        held: Sequence[host_binding.Binding],
        present: our_allocations.Allocated,
        seen: Seen,
    ) -> counted.Units:
        """The units that an instance lacks by what Placement says now.

        :param held: by the instance
        :raises ServiceUnavailable: Placement gave no usable answer.
        """
        ours = self._providers(seen.held)
        units = counted.lacking(
            held,
            {**seen.allocated, present.consumer: present.of(ours)},
            seen.consumers,
        ).get(present.consumer, counted.Units())
        if units and present.resources.keys() - ours:
            # A Cyborg has them until its import is complete.
            others = (
                our_allocations.in_tree(self._current.view.node_uuid) - ours
            )
            units = counted.less(units, counted.amounts(present.of(others)))
        return units

    def _heal(
        self,
        present: our_allocations.Allocated,
        left: dict[str, counted.Units],
        is_settled: bool,
    ) -> list[finding.Finding]:
        """Allocate what an instance holds, and take it out of what is left.

        :returns: what to tell
        """
        uuid = present.consumer
        units = left[uuid]
        words = f'Placement does not count {_in_words(units)} that it holds'
        if not is_settled:
            words += ': reserved until no operation of Nova is under way'
            told = finding.Finding(_Kind.UNCOUNTED, words, instance_uuid=uuid)
            # A part of an operation is no finding.
            return [told] if uuid in self._suspected else []
        words += ': allocated to it again'
        LOG.warning(
            'Placement does not count %s that instance %s holds: allocated to '
            'it again',
            _in_words(units),
            uuid,
            instance_uuid=uuid,
        )
        with retries.retry_later(
            f'What instance {uuid} lacks is reserved'
        ) as tried:
            our_allocations.give(
                present,
                units,
                servers.owner(uuid),
                self._current.view.node_uuid,
            )
            left[uuid] = counted.Units()
        return tried.outcome(_Kind.UNCOUNTED, words, uuid)

    def take_leftovers(
        self, seen: Seen, host: binding_repairs.HostBindings
    ) -> Iterator[finding.Finding]:
        """Remove allocations that no one needed in the last pass, either.

        :param host: was read after ``seen``
        :raises oslo_messaging.MessagingException: Nova does not answer
        """
        consumers = dataclasses.replace(
            seen.consumers,
            deleted=servers.deleted(
                seen.allocated.keys()
                - seen.consumers.migrations.keys()
                - host.servers.keys()
            ),
        )
        found = dict(counted.leftovers(host, seen.allocated, consumers))
        before, self._leftovers = self._leftovers, found
        for consumer in sorted(found.keys() & before):
            resources = seen.allocated[consumer]
            words = (
                f'What consumer {consumer} has in Placement of accelerators '
                f'of this host is taken away, {found[consumer]}: {resources}'
            )
            LOG.warning(words)
            with retries.retry_later(
                f'Consumer {consumer} still has it'
            ) as tried:
                our_allocations.take_away(consumer, resources)
                del found[consumer]
            yield from tried.outcome(
                _Kind.ALLOCATION, words, consumers.instance_of(consumer)
            )


def _in_words(units: counted.Units) -> str:
    """Such as "1 FPGA of provider 4a2e..."."""
    return ', '.join(
        f'{amount} {place.resource_class} of provider {place.rp_uuid}'
        for place, amount in sorted(
            units.items(),
            key=lambda item: (item[0].rp_uuid, item[0].resource_class),
        )
    )
