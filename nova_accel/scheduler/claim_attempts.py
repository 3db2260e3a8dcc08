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

"""Several attempts to claim a host, each with another candidate.

Nova claims the first allocation candidate of a host, and goes on to the next
host if it is lost to another request. So the filter returns a host once for
each of its best candidates. All attempts of a host are one host in every other
respect.

After the claim Nova offers other hosts as alternates, and weighs the hosts
again for the next server of a multi-create. Until then only the first attempt
of each host without a claim shows its candidates. So neither a host that has
got a server nor a second attempt becomes an alternate.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import time

from nova import objects
from nova.scheduler import host_manager

from nova_accel.model import naming
from nova_accel.model.units import host_links
from nova_accel.model.units import known_units
from nova_accel.scheduler import candidate_order
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership

#: The attempts of one server, if it has more candidates than hosts. As many
#: requests may meet on the last devices of a host, and none is refused.
MAX_ATTEMPTS = 64


class ScheduledRequest:
    """The servers of one request, and which hosts they have got so far.

    :ivar order: the order of candidates for the server that Nova looks at
    """

    def __init__(
        self,
        request_spec: 'objects.RequestSpec',
        known: known_units.KnownUnits | None,
    ) -> None:
        """:param known: what is known of free units, None if nothing is"""
        self._spec = request_spec
        self._known = known
        self._sets_aside = known is not None and _wants_known_shapes(
            known, ownership.our_groups(request_spec)
        )
        # The units set aside for the server that Nova looks at.
        self._reserved: host_links.Amounts = {}
        # The uuid of a server -> the uuid of its host.
        self._hosts: dict[str, str] = {}
        self.sort_anew()

    def sort_anew(self) -> None:
        """Begin with the next server."""
        self.order = candidate_order.CandidateOrder(
            ownership.our_groups(self._spec), self._known
        )

    @property
    def has_host(self) -> bool:
        """Whether the server that Nova looks at has got its host."""
        return self._spec.instance_uuid in self._hosts

    def gave(self, host_uuid: str) -> bool:
        """Whether a server of the request has got the host."""
        return host_uuid in self._hosts.values()

    def is_silent(self, host: host_manager.HostState) -> bool:
        return self._known is not None and host.nodename in self._known.silent

    def can_claim(self, candidate: candidate_order.Candidate) -> bool:
        """Whether a candidate's cards can still take the shapes it asks for.

        Placement counts the shares of cards, and not which shapes exclude each
        other. Nova looks at the candidates of a host just before it claims the
        first one. So that one is set aside now, instead of the one before.
        """
        if self._known is None or not self._sets_aside:
            return True
        before, self._reserved = self._reserved, self.order.amounts(candidate)
        return self._known.reserve(
            self._spec.instance_uuid, self._reserved, before, time.monotonic()
        )

    def claimed(self, host_uuid: str) -> None:
        """Note that the server has got a host, and its units."""
        server = self._spec.instance_uuid
        self._hosts[server] = host_uuid
        self._reserved = {}
        if self._known is not None:
            now = time.monotonic()
            for place, amount in self._amounts().items():
                self._known.claim(server, *place, amount, now)

    def _amounts(self) -> Mapping[tuple[str, str], int]:
        """The claim of the server: (provider, class) -> units."""
        amounts: collections.Counter[tuple[str, str]] = collections.Counter()
        for group in ownership.our_groups(self._spec):
            for rp_uuid in group.provider_uuids:
                for resource_class, amount in our_group.units_of(
                    group
                ).items():
                    amounts[rp_uuid, resource_class] += amount
        return amounts


def _wants_known_shapes(
    known: known_units.KnownUnits,
    groups: 'Sequence[objects.RequestGroup]',
) -> bool:
    """Whether groups ask for shapes, and cards are known to have room.

    If only claims leave no room, some may be void. Then the hosts decide.
    """
    return any(
        naming.is_shape_class(resource_class)
        for group in groups
        for resource_class in group.resources
    ) and known.serves([our_group.to_group(group) for group in groups])


class Attempt(host_manager.HostState):
    """A host with one candidate before all others.

    It shares the state of the host with all attempts of the host.

    :param number: of attempts of the host before this one
    :ivar fit: how well the candidate fits that Nova would claim
    """

    __slots__ = ('_candidates', 'fit', 'number', 'request')

    def __init__(
        self,
        host: host_manager.HostState,
        request: ScheduledRequest,
        candidates: Sequence[candidate_order.Candidate],
        number: int = 0,
    ) -> None:
        self.__dict__ = vars(host)  # type: ignore[misc]
        self.request = request
        self.number = number
        self.allocation_candidates = list(candidates)

    @property
    def allocation_candidates(self) -> list[candidate_order.Candidate]:
        """The candidates of the host; none where it must be no alternate.

        There is none, either, if others have taken its card in another shape.
        """
        if self.request.has_host and (
            self.number or self.request.gave(self.uuid)
        ):
            return []
        if self._candidates and not (
            self.request.has_host
            or self.request.can_claim(self._candidates[0])
        ):
            return []
        return self._candidates

    @allocation_candidates.setter
    def allocation_candidates(
        self, candidates: list[candidate_order.Candidate]
    ) -> None:
        self._candidates = candidates
        self.fit = self.request.order.fit(
            self, candidates[0] if candidates else None
        )

    def has_candidate(self, number: int) -> bool:
        """Whether the host has so many others, whatever is set aside."""
        return len(self._candidates) > number

    def consume_from_request(self, spec_obj: 'objects.RequestSpec') -> None:
        """Nova calls it once the host is claimed."""
        self.request.claimed(self.uuid)
        super().consume_from_request(spec_obj)

    def again(self, number: int) -> 'Attempt':
        """A further attempt, with the candidate of that number first."""
        first = self._candidates[number]
        others = self._candidates[:number] + self._candidates[number + 1 :]
        return Attempt(self, self.request, [first, *others], number)


def request_of(
    hosts: Iterable[host_manager.HostState],
) -> ScheduledRequest | None:
    """The request whose attempts the hosts are, None before any attempt."""
    return next(
        (host.request for host in hosts if isinstance(host, Attempt)), None
    )


def distinct(
    hosts: Iterable[host_manager.HostState],
) -> list[host_manager.HostState]:
    """Each host once."""
    return list({id(vars(host)): host for host in hosts}.values())


def further(firsts: Sequence[Attempt]) -> Iterator[Attempt]:
    """More attempts, all second ones of hosts before any third one.

    :param firsts: the first attempts of the hosts
    """
    room = MAX_ATTEMPTS - len(firsts)
    number = 1
    while room > 0:
        again = [first for first in firsts if first.has_candidate(number)][
            :room
        ]
        if not again:
            return
        for first in again:
            yield first.again(number)
        room -= len(again)
        number += 1
