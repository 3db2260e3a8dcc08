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

"""Find out which provider serves which group, from allocations alone.

Nova's request groups never reach the compute host. It only knows how much of
each resource class was claimed from each provider. An assignment is correct if
two things hold. Each group is served by one provider that has all of its
required and none of its forbidden traits. Together the groups use up the
allocations exactly.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import operator

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import group_division
from nova_accel.model.profiles import provider_allocation

#: (group index, provider uuid) -> the price of that choice, not negative.
Cost = Callable[[int, str], float]

#: The amounts that a provider has left, one for each resource class.
_Left = tuple[int, ...]

#: For each kind of provider, the amounts that its providers have left, sorted.
_State = tuple[tuple[_Left, ...], ...]

#: The most choices that are tried, each counted once for each provider.
#: Equivalent groups and providers count once, so only a profile of many
#: different groups comes near the limit. The search runs in a transaction, and
#: this many choices take a fraction of a second.
MAX_STEPS = 1_000_000


def assign(
    groups: Sequence[device_profile.Group],
    allocations: Sequence[provider_allocation.ProviderAllocation],
    cost: Cost = lambda index, uuid: 0,
) -> list[str]:
    """The cheapest exact assignment; ties go to the first providers.

    :returns: for each group, the uuid of its provider
    :raises NoAssignment: there is none, or the search took more than
        :data:`MAX_STEPS`
    """
    classes = sorted(
        {
            resource_class
            for each in (
                *(group.resources for group in groups),
                *(allocation.resources for allocation in allocations),
            )
            for resource_class in each
        }
    )
    found = None
    if all(
        sum(group.resources.get(name, 0) for group in groups)
        == sum(allocation.resources.get(name, 0) for allocation in allocations)
        for name in classes
    ):
        found = _Search(groups, allocations, cost, classes).cheapest()
    if found is None:
        raise exceptions.NoAssignment(
            f'the {len(groups)} groups of the device profile do not match '
            'what is allocated from ' + _describe(allocations)
        )
    return [allocations[position].rp_uuid for position in found]


def serves(
    groups: Sequence[device_profile.Group],
    allocations: Sequence[provider_allocation.ProviderAllocation],
) -> bool:
    """Whether allocations are those of a profile's groups, or their parts."""
    try:
        assign(group_division.placed(groups, allocations), allocations)
    except exceptions.NoAssignment:
        return False
    return True


def _describe(
    allocations: Sequence[provider_allocation.ProviderAllocation],
) -> str:
    return (
        ', '.join(
            f'{allocation.rp_uuid} {dict(allocation.resources)}'
            for allocation in allocations
        )
        or 'no provider'
    )


class _Search:
    """The search for one assignment.

    The best choice for the remaining groups depends only on what the earlier
    groups have left. Providers of one kind are interchangeable in this. So
    each such state is searched once.
    """

    def __init__(
        self,
        groups: Sequence[device_profile.Group],
        allocations: Sequence[provider_allocation.ProviderAllocation],
        cost: Cost,
        classes: Sequence[str],
    ) -> None:
        self._groups = groups
        self._allocations = allocations
        self._wanted = [_amounts(group.resources, classes) for group in groups]
        self._left = [
            _amounts(allocation.resources, classes)
            for allocation in allocations
        ]
        # For each provider, its price for each group; None if it does not
        # suit.
        self._prices = [
            tuple(
                cost(index, allocation.rp_uuid)
                if allocation.suits(group)
                else None
                for index, group in enumerate(groups)
            )
            for allocation in allocations
        ]
        self._kinds = sorted(set(self._prices), key=self._prices.index)
        self._kind_of = [self._kinds.index(prices) for prices in self._prices]
        self._price: dict[tuple[int, _State], float | None] = {}
        self._steps = 0

    def cheapest(self) -> list[int] | None:
        """The position of each group's provider."""
        left = list(self._left)
        if self._rest(0, self._state(left)) is None:
            return None
        return [self._first(index, left) for index in range(len(self._groups))]

    def _first(self, index: int, left: list[_Left]) -> int:
        """The position of the first cheapest provider, which is then taken."""
        best = self._rest(index, self._state(left))
        for position, kind in enumerate(self._kind_of):
            after = list(left)
            after[position] = _minus(left[position], self._wanted[index])
            price = self._kinds[kind][index]
            if price is None or min(after[position], default=0) < 0:
                continue
            rest = self._rest(index + 1, self._state(after))
            if rest is not None and price + rest == best:
                left[:] = after
                return position
        raise AssertionError('a price without a choice')

    def _state(self, left: Sequence[_Left]) -> _State:
        of_kinds: list[list[_Left]] = [[] for _kind in self._kinds]
        for kind, each in zip(self._kind_of, left, strict=True):
            of_kinds[kind].append(each)
        return tuple(tuple(sorted(of_kind)) for of_kind in of_kinds)

    def _rest(self, index: int, state: _State) -> float | None:
        """The price of the groups from ``index`` on; None if none fits."""
        if index == len(self._groups):
            # Everything is used up, because the sums are equal.
            return 0
        known = (index, state)
        if known not in self._price:
            self._price[known] = min(
                (
                    price
                    for price in self._prices_of(index, state)
                    if price is not None
                ),
                default=None,
            )
        return self._price[known]

    def _prices_of(self, index: int, state: _State) -> Iterator[float | None]:
        for kind, of_kind in enumerate(state):
            price = self._kinds[kind][index]
            if price is None:
                continue
            for each in set(of_kind):
                after = _minus(each, self._wanted[index])
                if min(after, default=0) < 0:
                    continue
                self._count()
                rest = self._rest(index + 1, _with(state, kind, each, after))
                yield None if rest is None else price + rest

    def _count(self) -> None:
        self._steps += len(self._allocations)
        if self._steps > MAX_STEPS:
            raise exceptions.NoAssignment(
                f'the {len(self._groups)} groups of the device profile can '
                'be matched in too many ways to what is allocated from '
                f'{_describe(self._allocations)}: make groups of the profile '
                'equal, or have devices pooled'
            )


def _amounts(amounts: Mapping[str, int], classes: Sequence[str]) -> _Left:
    return tuple(amounts.get(name, 0) for name in classes)


def _minus(left: _Left, wanted: _Left) -> _Left:
    return tuple(map(operator.sub, left, wanted))


def _with(state: _State, kind: int, before: _Left, after: _Left) -> _State:
    """The state after one provider of a kind has less left."""
    of_kind = list(state[kind])
    of_kind[of_kind.index(before)] = after
    return (*state[:kind], tuple(sorted(of_kind)), *state[kind + 1 :])
