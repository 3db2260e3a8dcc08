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

"""A pool: the units of one provider, and what was found out about it."""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices
from nova_accel.model.cards import shared_card
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_providers
from nova_accel.model.units import free_units
from nova_accel.model.units import unit_choice

#: How many costs a pool remembers; more groups than these are hardly asked
#: for before the pool changes.
_REMEMBERED = 64


class KnownPool:
    """The deployables of one provider. It never changes.

    A provider that changes gets another pool. So a result that is remembered
    here can never be an old one.
    """

    __slots__ = (
        '_claimed',
        '_costs',
        '_demand',
        '_room',
        'card',
        'linked_on',
        'units',
    )

    def __init__(
        self,
        deployables: Iterable[free_units.FreeUnits],
        claimed: Mapping[str, int],
        demand: Mapping[str, float],
        linked_on: str | None = None,
    ) -> None:
        """Make the pool, of whose units some are claimed.

        :param claimed: resource class -> how many units are not free
        :param linked_on: the host, if the pool is one of joined devices
        """
        self.linked_on = linked_on
        units: Sequence[free_units.FreeUnits] = tuple(deployables)
        self._claimed = claimed
        self.card = _card(units)
        if self.card is None:
            for resource_class, amount in claimed.items():
                units = _without(
                    units,
                    device_profile.Group({resource_class: amount}),
                    demand,
                )
        else:
            units = _left(units, self.card, claimed)
        self.units = units
        self._demand = demand
        self._costs: dict[
            tuple[device_profile.Group, unit_choice.UnitPolicy],
            unit_choice.Cost | None,
        ] = {}
        self._room: dict[device_profile.Group, dict[str, int]] = {}

    @property
    def holds_bitstreams(self) -> bool:
        """Whether its costs depend on the demand."""
        return any(units.bitstream_id is not None for units in self.units)

    def cost(
        self,
        group: device_profile.Group,
        policy: unit_choice.UnitPolicy,
    ) -> unit_choice.Cost | None:
        """The cost of serving a group; None if the pool cannot."""
        key = group, policy
        try:
            return self._costs[key]
        except KeyError:
            pass
        choice = unit_choice.choose(group, self.units, policy, self._demand)
        cost = None if choice is None else choice.cost
        if cost is not None and self.card is not None:
            cost = _of_card(cost, self.card, group, policy)
        if len(self._costs) >= _REMEMBERED:
            self._costs.clear()
        self._costs[key] = cost
        return cost

    def after(self, group: device_profile.Group) -> 'KnownPool | None':
        """The pool when a server has got a group, as its host will choose.

        :returns: None if it cannot serve the group
        """
        if self.cost(group, unit_choice.UnitPolicy.PACK) is None:
            return None
        units, claimed = self.units, collections.Counter[str]()
        if self.card is None:
            units = _without(units, group, self._demand)
        else:
            claimed.update(self._claimed)
            claimed.update(group.resources)
        return KnownPool(units, claimed, self._demand, self.linked_on)

    def freed(self, held: Mapping[str, free_units.HeldUnits]) -> 'KnownPool':
        """The pool when a server has given units back.

        :param held: deployable uuid -> what the server has of it
        """
        units = tuple(
            each.freed(held[each.deployable_uuid])
            if each.deployable_uuid in held
            else each
            for each in self.units
        )
        claimed = {} if self.card is None else self._claimed
        return KnownPool(units, claimed, self._demand, self.linked_on)

    def room(self, group: device_profile.Group) -> Mapping[str, int]:
        """Resource class -> how many free units suit a group."""
        found = self._room.get(group)
        if found is None:
            found = dict.fromkeys(group.resources, 0)
            for units in self.units:
                kind = units.resource_class, units.traits
                if free_providers.suits(group, kind):
                    found[units.resource_class] += units.free
            if len(self._room) >= _REMEMBERED:
                self._room.clear()
            self._room[group] = found
        return found


def _card(
    pool: Sequence[free_units.FreeUnits],
) -> shared_card.SharedCard | None:
    """The card of many shapes whose units these are, None if there is none."""
    if not any(units.slices for units in pool):
        return None
    return shared_card.SharedCard(
        {units.resource_class: units.slices for units in pool},
        [each for units in pool for each in units.taken],
    )


def _left(
    pool: Sequence[free_units.FreeUnits],
    card: shared_card.SharedCard,
    claimed: Mapping[str, int],
) -> Sequence[free_units.FreeUnits]:
    """The units of a card that are left of what is claimed."""
    for resource_class, amount in claimed.items():
        for _unit in range(amount):
            card.take(resource_class)
    return tuple(
        dataclasses.replace(units, free=card.free(units.resource_class))
        for units in pool
    )


def _of_card(
    cost: unit_choice.Cost,
    card: shared_card.SharedCard,
    group: device_profile.Group,
    policy: unit_choice.UnitPolicy,
) -> unit_choice.Cost | None:
    """The cost, by all that the card could still be."""
    harm = card.harm(group.resources, policy is unit_choice.UnitPolicy.PACK)
    return None if harm is None else with_harm(cost, harm)


def with_harm(
    cost: unit_choice.Cost, harm: card_slices.Harm
) -> unit_choice.Cost:
    """The cost, with the harm to cards in the place of that to sets."""
    # The parts of the harm are compared in their order.
    left = harm.lost * card_slice.WHOLE_CARD + harm.left
    return cost._replace(broken=harm.order, left=left)


def _without(
    pool: Sequence[free_units.FreeUnits],
    group: device_profile.Group,
    demand: Mapping[str, float],
) -> Sequence[free_units.FreeUnits]:
    """The pool after its host has bound a group, as it will choose."""
    choice = unit_choice.choose(group, pool, demand=demand)
    return tuple(
        units
        if units.resource_class not in group.resources
        else dataclasses.replace(
            units,
            # More is claimed than is free: the database lags behind.
            free=0
            if choice is None
            else units.free - choice.units.get(units.deployable_uuid, 0),
        )
        for units in pool
    )


#: The pool of a provider that no one knows.
EMPTY = KnownPool((), {}, {})
