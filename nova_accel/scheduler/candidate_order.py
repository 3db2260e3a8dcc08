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

"""The order of allocation candidates, by what is known of free units."""

from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import random
from typing import Any
from typing import NamedTuple

from nova import objects
from nova.scheduler import host_manager

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_links
from nova_accel.model.units import known_pool
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_choice
from nova_accel.scheduler import aggregate_values
from nova_accel.scheduler import our_group
from nova_accel.scheduler import unit_policies

Candidate = Mapping[str, Any]


class CandidateFit(NamedTuple):
    """How well a candidate fits a request; the smaller, the better.

    A candidate is doubtful if its units are not known to be free. Placement
    may know better, so it comes last and is not dropped. ``left`` is how many
    units of the host others can have, negative to spread; the cost has only
    those of the provider.
    """

    is_doubtful: bool
    cost: unit_choice.Cost
    left: int = 0


#: A candidate of which nothing is known, because nothing is known at all.
UNKNOWN = CandidateFit(False, unit_choice.Cost())

_DOUBTFUL = CandidateFit(True, unit_choice.Cost())


class _GroupWish(NamedTuple):
    requester_id: str
    group: device_profile.Group
    policies: aggregate_values.OfHosts[unit_choice.UnitPolicy]
    used: frozenset[str]

    def sign(self, host: host_manager.HostState) -> int:
        """Whether units that are left are bad or good."""
        packs = self.policies.of(host) is unit_choice.UnitPolicy.PACK
        return 1 if packs else -1


class CandidateOrder:
    """The order of the candidates of one request.

    :param groups: of the request, served by us
    :param known: what is known of free units, None if nothing is
    """

    def __init__(
        self,
        groups: 'Sequence[objects.RequestGroup]',
        known: known_units.KnownUnits | None,
    ) -> None:
        self._known = known
        self._asked = [_to_wish(group) for group in groups]
        self._used = frozenset().union(*(each.used for each in self._asked))
        # By the identity of a host's state, and of a candidate.
        self._left: dict[int, int] = {}
        self._fits: dict[int, CandidateFit] = {}

    def sorted(self, host: host_manager.HostState) -> list[Candidate]:
        """The candidates of a host, the best first, equal ones shuffled.

        If the providers of some have served the previous server of the
        request, these come after their equals.
        """
        candidates = list(host.allocation_candidates)
        if len(candidates) < 2:
            return candidates
        self._left[id(vars(host))] = self._left_by(host, candidates)
        random.shuffle(candidates)
        candidates.sort(
            key=lambda candidate: (
                self.fit(host, candidate),
                len(self._used & candidate['allocations'].keys()),
            )
        )
        return candidates if len(self._asked) == 1 else _distinct(candidates)

    def fit(
        self, host: host_manager.HostState, candidate: Candidate | None
    ) -> CandidateFit:
        """How well a candidate of a host fits; None is for a host without."""
        if self._known is None:
            return UNKNOWN
        if candidate is None:
            return _DOUBTFUL
        found = self._fits.get(id(candidate))
        if found is None:
            found = self._measured(self._known, host, candidate)
            self._fits[id(candidate)] = found
        return found

    def _measured(
        self,
        known: known_units.KnownUnits,
        host: host_manager.HostState,
        candidate: Candidate,
    ) -> CandidateFit:
        costs = []
        for asked in self._asked:
            [rp_uuid] = candidate['mappings'][asked.requester_id]
            cost = known.cost(asked.group, rp_uuid, asked.policies.of(host))
            if cost is None:
                return _DOUBTFUL
            costs.append(cost)
        amounts = self.amounts(candidate)
        if len(costs) == 1:
            [cost] = costs
        elif all(
            amount <= known.free(*place) for place, amount in amounts.items()
        ):
            cost = unit_choice.together(costs)
        else:
            return _DOUBTFUL
        cards = {
            rp_uuid
            for rp_uuid, resource_class in amounts
            if naming.is_shape_class(resource_class)
        }
        if cards and len(costs) > 1:
            harm_to_cards = known.harm_to_cards(amounts, self._packs(host))
            if harm_to_cards is None:
                return _DOUBTFUL
            cost = known_pool.with_harm(cost, harm_to_cards)._replace(
                span=len(cards)
            )
        harm = known.harm(amounts)
        if harm is not None:
            cost = self._with_harm(cost, harm, host)
            return CandidateFit(False, cost, cost.left)
        return CandidateFit(
            False, cost, self._left.get(id(vars(host)), cost.left)
        )

    def amounts(self, candidate: Candidate) -> dict[tuple[str, str], int]:
        """(Provider, class) -> the units that all groups take of it."""
        amounts: dict[tuple[str, str], int] = {}
        for asked in self._asked:
            [rp_uuid] = candidate['mappings'][asked.requester_id]
            for resource_class, amount in asked.group.resources.items():
                key = rp_uuid, resource_class
                amounts[key] = amounts.get(key, 0) + amount
        return amounts

    def _with_harm(
        self,
        cost: unit_choice.Cost,
        harm: host_links.Harm,
        host: host_manager.HostState,
    ) -> unit_choice.Cost:
        """The cost, by the sets of the whole host and not of single pools."""
        is_packed = self._packs(host)
        return cost._replace(
            span=harm.span,
            broken=harm.broken if is_packed else 0,
            left=harm.left if is_packed else -harm.left,
        )

    def _packs(self, host: host_manager.HostState) -> bool:
        return all(asked.sign(host) > 0 for asked in self._asked)

    def _left_by(
        self,
        host: host_manager.HostState,
        candidates: Sequence[Candidate],
    ) -> int:
        """The units that a host has left, by all of its candidates."""
        known = self._known
        if known is None:
            return 0
        return sum(
            asked.sign(host)
            * (
                sum(known.free(uuid, resource_class) for uuid in rp_uuids)
                - amount
            )
            for asked, rp_uuids in self._providers(candidates)
            for resource_class, amount in asked.group.resources.items()
        )

    def _providers(
        self, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[_GroupWish, set[str]]]:
        """The providers of all candidates, by group."""
        for asked in self._asked:
            yield (
                asked,
                {
                    candidate['mappings'][asked.requester_id][0]
                    for candidate in candidates
                },
            )


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, without later ones that allocate the same.

    Placement tells all ways to give equal providers to the parts of a group.
    If one of them cannot be claimed, the others cannot be either.
    """
    found: dict[Hashable, Candidate] = {}
    for candidate in candidates:
        key = frozenset(
            (uuid, *sorted(allocation['resources'].items()))
            for uuid, allocation in candidate['allocations'].items()
        )
        found.setdefault(key, candidate)
    return list(found.values())


def _to_wish(group: 'objects.RequestGroup') -> _GroupWish:
    found = our_group.to_group(group)
    return _GroupWish(
        group.requester_id,
        found,
        unit_policies.of_hosts(min(found.resources)),
        frozenset(group.provider_uuids),
    )
