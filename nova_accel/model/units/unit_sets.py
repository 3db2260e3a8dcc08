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

"""Sets of deployables within each other, such as NUMA nodes and cards.

A set is wholly free if all units of all its deployables are. Units are taken
so that no larger free set is broken than is needed, as a buddy allocator takes
memory.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from nova_accel.model.units import free_units


class UnitSet(NamedTuple):
    """A set of deployables, or a single one, which has no parts.

    ``total`` is how many units it has, ``free`` how many of them are free and
    ``ready`` how many may be taken. ``size`` is the number of deployables.
    """

    name: str
    total: int
    free: int
    ready: int
    size: int
    parts: tuple['UnitSet', ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether all of it is free."""
        return self.free == self.total


class Damage(NamedTuple):
    """The damage that is done to the sets.

    ``span`` is the number of deployables in the smallest set that has all that
    is taken, and ``room`` how many units of that set were free. ``broken`` is
    the size of the largest set that was wholly free; it is 1 if there was
    none.
    """

    span: int = 0
    broken: int = 0
    room: int = 0


def tree(
    pool: Sequence[free_units.FreeUnits], ready: Mapping[str, int]
) -> UnitSet:
    """The set of the whole pool, with those within.

    :param ready: deployable uuid -> how many of its units may be taken
    """
    return _set('', pool, ready, 0)


def _set(
    name: str,
    members: Sequence[free_units.FreeUnits],
    ready: Mapping[str, int],
    depth: int,
) -> UnitSet:
    """A set; if it has one member, that deployable itself."""
    if len(members) == 1:
        return _single(members[0], ready)
    inner: dict[str, list[free_units.FreeUnits]] = {}
    parts: list[UnitSet] = []
    for each in members:
        if depth < len(each.sets):
            inner.setdefault(each.sets[depth], []).append(each)
        else:
            parts.append(_single(each, ready))
    parts += [
        _set(name, within, ready, depth + 1) for name, within in inner.items()
    ]
    return UnitSet(
        name,
        sum([part.total for part in parts]),
        sum([part.free for part in parts]),
        sum([part.ready for part in parts]),
        len(members),
        tuple(parts),
    )


def _single(each: free_units.FreeUnits, ready: Mapping[str, int]) -> UnitSet:
    uuid = each.deployable_uuid
    return UnitSet(uuid, each.total, each.free, ready.get(uuid, 0), 1)


def best(within: UnitSet, amount: int, is_packed: bool) -> dict[str, int]:
    """Deployable uuid -> how many units to take, with the least damage.

    :param amount: not more than are ready
    """
    if not within.parts:
        return {within.name: amount}
    taken: dict[str, int] = {}
    parts = [part for part in within.parts if part.ready]
    while amount:
        able = [part for part in parts if part.ready >= amount]
        if able:
            return taken | _least(able, amount, is_packed)
        # None has as many, so few sets are touched if the largest goes first.
        largest = max(parts, key=lambda part: part.ready)
        parts.remove(largest)
        taken |= best(largest, largest.ready, is_packed)
        amount -= largest.ready
    return taken


def _least(
    able: Sequence[UnitSet], amount: int, is_packed: bool
) -> dict[str, int]:
    """The units of that set whose loss does the least damage."""
    choices = [(part, best(part, amount, is_packed)) for part in able]

    def cost(choice: tuple[UnitSet, dict[str, int]]) -> tuple[int, ...]:
        part, taken = choice
        done = damage(part, taken)
        if is_packed:
            return (done.span, done.broken, done.room, part.free)
        return (done.span, -part.free)

    return min(choices, key=cost)[1]


def damage(within: UnitSet, taken: Mapping[str, int]) -> Damage:
    """The damage that is done if these units are taken.

    :param taken: deployable uuid -> how many units
    """
    if not within.parts:
        if not taken.get(within.name):
            return Damage()
        return Damage(1, within.total if within.is_whole else 1, within.free)
    touched = [
        found
        for found in [damage(part, taken) for part in within.parts]
        if found.span
    ]
    if not touched:
        return Damage()
    span, broken, room = touched[0]
    if len(touched) > 1:
        span, room = within.size, within.free
        broken = max([found.broken for found in touched])
    return Damage(span, within.total if within.is_whole else broken, room)
