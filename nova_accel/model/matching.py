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

"""Which provider serves which group, found from the allocations alone.

Nova's request groups never reach the compute host: it knows only how much of
each resource class was claimed from each provider. An assignment is right if
every group is served by one provider that has its required and none of its
forbidden traits, and together the groups consume the allocations exactly.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools

from nova_accel import exceptions
from nova_accel.model import device_profile


@dataclasses.dataclass(frozen=True)
class Provider:
    """A provider as the instance's allocations and the tree show it.

    ``allocated`` is what the instance holds of it: resource class -> amount.
    """

    uuid: str
    allocated: Mapping[str, int]
    traits: frozenset[str]

    def suits(self, group: device_profile.Group) -> bool:
        """Whether the traits let this provider serve the group."""
        return (group.required <= self.traits
                and not group.forbidden & self.traits)


def without(providers: Sequence[Provider],
            held: Mapping[tuple[str, str], int]) -> tuple[Provider, ...]:
    """The providers, with what is left when something of them is held.

    :param held: (provider uuid, resource class) -> amount
    """
    left = (
        dataclasses.replace(provider, allocated={
            resource_class: amount - held.get((provider.uuid, resource_class),
                                              0)
            for resource_class, amount in provider.allocated.items()
            if amount > held.get((provider.uuid, resource_class), 0)})
        for provider in providers)
    return tuple(provider for provider in left if provider.allocated)


#: (group index, provider uuid) -> the price of that choice, not negative.
Cost = Callable[[int, str], float]

_Left = tuple[int, ...]


def assign(groups: Sequence[device_profile.Group],
           providers: Sequence[Provider],
           cost: Cost = lambda index, uuid: 0) -> list[str]:
    """The cheapest exact assignment; of equal ones, that of the first
    providers.

    :returns: for each group, the uuid of its provider
    :raises NoAssignment: there is none
    """
    slots = [(position, resource_class)
             for position, provider in enumerate(providers)
             for resource_class in provider.allocated]
    slot_of = {slot: number for number, slot in enumerate(slots)}

    def consume(left: _Left, group: device_profile.Group,
                position: int) -> _Left | None:
        after = list(left)
        for resource_class, amount in group.resources.items():
            slot = slot_of.get((position, resource_class))
            if slot is None or after[slot] < amount:
                return None
            after[slot] -= amount
        return tuple(after)

    # What is best for the groups from ``index`` on depends only on what the
    # groups before left over, so each such state is searched once.
    @functools.cache
    def best(index: int, left: _Left) -> tuple[float, tuple[int, ...]] | None:
        if index == len(groups):
            return None if any(left) else (0, ())
        choices = []
        for position, provider in enumerate(providers):
            if not provider.suits(groups[index]):
                continue
            after = consume(left, groups[index], position)
            rest = None if after is None else best(index + 1, after)
            if rest is not None:
                choices.append((cost(index, provider.uuid) + rest[0],
                                (position, *rest[1])))
        return min(choices, default=None)

    found = best(0, tuple(providers[position].allocated[resource_class]
                          for position, resource_class in slots))
    if found is None:
        raise exceptions.NoAssignment(
            f'the {len(groups)} groups of the device profile do not match '
            'what is allocated from ' + (', '.join(
                f'{provider.uuid} {dict(provider.allocated)}'
                for provider in providers) or 'no provider'))
    return [providers[position].uuid for position in found[1]]
