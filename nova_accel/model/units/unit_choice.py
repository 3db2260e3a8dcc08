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

"""The choice of the units that serve a group, by one policy everywhere.

The weigher compares hosts by it, the host filter the candidates of a host, and
a binding takes the units that it names:

* Healthy units come before degraded ones.
* Units near the guest's NUMA cells come first, if the group wants them so.
* An FPGA region that holds the wanted bitstream comes first, then an empty
  region, then the one whose bitstream is missed least.
* Units that lie in one small set come first.
* No larger set of units that is wholly free is broken than is needed. Then the
  fullest place comes first, so that no fresh card is carved while another has
  room. To spread, the emptiest place comes first instead.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import enum
import itertools
import types
from typing import NamedTuple

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import nearness
from nova_accel.model.units import unit_sets

# Each part of a price has so many bits, of which the sums of the parts of many
# choices use a few.
_PART_BITS = 32
_MAX_PART = 2**24

_NO_DEMAND: Mapping[str, float] = types.MappingProxyType({})


class UnitPolicy(enum.StrEnum):
    """Whether servers fill one place after the other, or all alike."""

    PACK = 'pack'
    SPREAD = 'spread'


class Cost(NamedTuple):
    """The cost of a choice; the smaller one is better, on any host.

    ``degraded`` units are chosen, and ``far`` ones are away from the guest's
    cells although the group wants them near. ``programmed`` regions have to be
    programmed, and ``erased`` ones lose a bitstream, whose demand is
    ``missed``. ``span`` is the number of deployables in the smallest set that
    has all units. ``broken`` is the size of the largest set that was wholly
    free. ``left`` is how many free units stay, negative to spread.
    """

    degraded: int = 0
    far: int = 0
    programmed: int = 0
    erased: int = 0
    missed: float = 0.0
    span: int = 0
    broken: int = 0
    left: int = 0

    @property
    def price(self) -> int:
        """The cost as one number, so that the costs of choices add up."""
        price = 0
        for part in self:
            price = (price << _PART_BITS) + min(int(part), _MAX_PART)
        return price


class UnitChoice(NamedTuple):
    """The units that serve a group.

    ``units`` maps the uuid of a deployable to how many of its units are
    chosen. ``why`` is for people and tells nothing of hosts.
    """

    cost: Cost
    units: Mapping[str, int]
    why: str


class _Grade(NamedTuple):
    """The cost of one unit, whatever is chosen beside it."""

    degraded: int
    far: int
    programmed: int
    erased: int
    missed: float


#: No cost has a higher price.
HIGHEST_PRICE = Cost(*(_MAX_PART,) * len(Cost._fields)).price


def policy_of(
    group: device_profile.Group, policies: Mapping[str, str]
) -> UnitPolicy:
    """The policy for the first class of a group.

    :param policies: resource class -> its policy, if it is not the default
    """
    return UnitPolicy(policies.get(min(group.resources), UnitPolicy.PACK))


def choose(
    group: device_profile.Group,
    pool: Sequence[free_units.FreeUnits],
    policy: UnitPolicy = UnitPolicy.PACK,
    demand: Mapping[str, float] = _NO_DEMAND,
    near: frozenset[str] = frozenset(),
) -> UnitChoice | None:
    """The best units of a pool for a group; of equals, the first ones.

    :param pool: all deployables of one provider
    :param demand: bitstream -> the demand for each idle region that holds it
    :param near: the NUMA nodes that have the guest's cells, by their names;
        none if they are unknown
    :returns: None if the pool cannot serve the group
    """
    choices = (
        _chosen(group, within, policy, demand, near)
        for within in _places(group, pool)
    )
    return min(
        (choice for choice in choices if choice is not None),
        key=lambda choice: choice.cost,
        default=None,
    )


def _places(
    group: device_profile.Group, pool: Sequence[free_units.FreeUnits]
) -> list[Sequence[free_units.FreeUnits]]:
    """The parts of the pool of which one has to have all units."""
    if not group.is_on_one_numa_node:
        return [pool]
    of_nodes: dict[str | None, list[free_units.FreeUnits]] = {}
    for each in pool:
        of_nodes.setdefault(each.numa_node, []).append(each)
    return list(of_nodes.values())


def _chosen(
    group: device_profile.Group,
    pool: Sequence[free_units.FreeUnits],
    policy: UnitPolicy,
    demand: Mapping[str, float],
    near: frozenset[str],
) -> UnitChoice | None:
    chosen: dict[str, int] = {}
    costs: list[Cost] = []
    others = 0
    for resource_class, amount in group.resources.items():
        of_class = [
            units for units in pool if units.resource_class == resource_class
        ]
        graded = _graded(group, of_class, demand, near)
        fitting = sum(units.free for _grade, units in graded)
        if fitting < amount:
            return None
        others += fitting - amount
        cost, taken = _best(graded, of_class, amount, policy)
        chosen |= taken
        costs.append(cost)
    cost = together(costs)
    return UnitChoice(cost, chosen, _why(group, cost, others))


def _graded(
    group: device_profile.Group,
    units: Sequence[free_units.FreeUnits],
    demand: Mapping[str, float],
    near: frozenset[str],
) -> list[tuple[_Grade, free_units.FreeUnits]]:
    """The deployables that suit and have free units, the best grades first."""
    wanted = group.properties.get('bitstream_id')
    graded = [
        (
            _grade(
                each,
                wanted,
                demand,
                nearness.is_far(group, each, near),
            ),
            each,
        )
        for each in units
        if each.free > 0
        and group.required <= each.traits
        and group.forbidden.isdisjoint(each.traits)
        and nearness.may_serve(group, each, near)
    ]
    graded.sort(key=lambda pair: pair[0])
    return graded


def _grade(
    units: free_units.FreeUnits,
    wanted: str | None,
    demand: Mapping[str, float],
    is_far: bool,
) -> _Grade:
    held = units.bitstream_id
    is_erased = held is not None and held != wanted
    return _Grade(
        int(units.is_degraded),
        int(is_far),
        int(wanted is not None and held != wanted),
        int(is_erased),
        demand.get(held, 0.0) if is_erased and held is not None else 0.0,
    )


def _best(
    graded: Sequence[tuple[_Grade, free_units.FreeUnits]],
    of_class: Sequence[free_units.FreeUnits],
    amount: int,
    policy: UnitPolicy,
) -> tuple[Cost, dict[str, int]]:
    """The best units, of which there are enough.

    All units of the better grades are taken. Among those of the last grade
    that is needed, the sets decide.
    """
    is_packed = policy is UnitPolicy.PACK
    taken: dict[str, int] = {}
    grades: list[_Grade] = []
    for grade, pairs in itertools.groupby(graded, key=lambda pair: pair[0]):
        equals = {units.deployable_uuid: units.free for _, units in pairs}
        missing = amount - len(grades)
        grades += [grade] * min(sum(equals.values()), missing)
        if len(grades) == amount:
            break
        taken |= equals
    root = unit_sets.tree(of_class, equals)
    taken |= unit_sets.best(root, missing, is_packed)
    span, broken, _room = unit_sets.damage(root, taken)
    left = root.free - amount
    return Cost(
        sum(grade.degraded for grade in grades),
        sum(grade.far for grade in grades),
        sum(grade.programmed for grade in grades),
        sum(grade.erased for grade in grades),
        sum(grade.missed for grade in grades),
        span,
        broken if is_packed else 0,
        left if is_packed else -left,
    ), taken


def together(costs: Sequence[Cost]) -> Cost:
    """The cost of the units of all classes of a group, or of all groups."""
    return Cost(
        sum(cost.degraded for cost in costs),
        sum(cost.far for cost in costs),
        sum(cost.programmed for cost in costs),
        sum(cost.erased for cost in costs),
        sum(cost.missed for cost in costs),
        max(cost.span for cost in costs),
        max(cost.broken for cost in costs),
        sum(cost.left for cost in costs),
    )


def _why(group: device_profile.Group, cost: Cost, others: int) -> str:
    reasons = [f'others fitted: {others}']
    if cost.degraded:
        reasons.insert(0, 'too few healthy units were free')
    if cost.far:
        reasons.insert(0, nearness.FAR)
    return '; '.join((*_reasons(group, cost), *reasons))


def _reasons(group: device_profile.Group, cost: Cost) -> Iterator[str]:
    """Why the regions were chosen, or else why the sets were."""
    if cost.erased:
        yield 'the region with the least wanted bitstream was chosen'
    elif cost.programmed:
        yield 'an empty region was chosen'
    elif 'bitstream_id' in group.properties:
        yield 'the region held the bitstream'
    elif cost.broken > sum(group.resources.values()):
        yield f'a free set of {cost.broken} was broken'
    else:
        yield 'no larger free set was broken'
