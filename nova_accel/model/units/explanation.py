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


"""Whether the groups of a device profile can be served, and why not.

As in Placement, one resource provider serves a whole group. It needs as many
free units as the group asks for, all required traits and no forbidden one.
Each group is judged on its own.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nova_accel.model import link_places
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile

#: The traits that all our providers have; hosts do not report them.
_OF_ALL = frozenset({naming.OWNER_TRAIT, naming.OWNERSHIP_TRAIT})


@dataclasses.dataclass(frozen=True)
class Inventory:
    """The units of one resource class at one provider, as its host says.

    ``link_sets`` are the sets of joined devices that all of them are in, see
    :mod:`nova_accel.model.link_places`.

    ``units`` maps the reason why units are not free to their number. The
    number of free units has the key None. With ``is_unpublished`` Placement
    may still reserve some of these, until the host reports.
    """

    hostname: str
    rp_uuid: str
    resource_class: str
    traits: frozenset[str]
    device_uuids: tuple[str, ...]
    units: Mapping[str | None, int]
    is_silent: bool = False
    link_sets: tuple[str, ...] = ()
    device_addresses: tuple[str, ...] = ()
    is_unpublished: bool = False

    @property
    def total(self) -> int:
        return sum(self.units.values())

    @property
    def free(self) -> int:
        return 0 if self.is_silent else self.units.get(None, 0)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A provider's inventory, and why the provider cannot serve the group.

    ``reasons`` is empty if it can.
    """

    inventory: Inventory
    reasons: tuple[str, ...]


def explain_all(
    groups: Sequence[device_profile.Group], inventories: Sequence[Inventory]
) -> list[list[Candidate]]:
    """The candidates of one host for each of a profile's groups."""
    joined = link_division.by_link(groups)
    return [
        explain(
            group,
            inventories,
            link_division.amount(joined.get(group.link or '', {}).values()),
        )
        for group in groups
    ]


def explain(
    group: device_profile.Group,
    inventories: Iterable[Inventory],
    joined: int = 0,
) -> list[Candidate]:
    """The inventories of the group's resource classes, in the order given.

    A group with a link is served by a set of devices of one host, which may
    have several providers.

    :param joined: how many units all groups with the same link ask for
    """
    there = [
        (inventory, tuple(_misfits(group, inventory)))
        for inventory in inventories
        if inventory.resource_class in group.resources
    ]
    # A host decides how many there are, so each is looked at once.
    in_sets = (
        {}
        if group.link is None
        else _free_in_sets(
            (inventory for inventory, misfits in there if not misfits),
            (group.link, joined),
        )
    )
    return [
        Candidate(
            inventory,
            (
                *misfits,
                *(
                    _too_few(group, inventory)
                    if group.link is None
                    else _not_joined(group, inventory, joined, in_sets)
                ),
            ),
        )
        for inventory, misfits in there
    ]


def _misfits(
    group: device_profile.Group, inventory: Inventory
) -> Iterable[str]:
    others = sorted(group.resources.keys() - {inventory.resource_class})
    if others:
        yield f'has no {", ".join(others)}'
    missing = sorted(group.required - inventory.traits)
    if missing:
        yield f'missing traits: {", ".join(missing)}'
    forbidden = sorted(group.forbidden & inventory.traits)
    if forbidden:
        yield f'forbidden traits: {", ".join(forbidden)}'
    if inventory.is_silent:
        yield 'its host does not report'


def _too_few(
    group: device_profile.Group, inventory: Inventory
) -> Iterable[str]:
    wanted = group.resources[inventory.resource_class]
    if inventory.total < wanted:
        yield f'{wanted} wanted, and it has {inventory.total}'
    elif inventory.units.get(None, 0) < wanted:
        yield (
            f'{wanted} wanted, {inventory.units.get(None, 0)} free '
            f'({_not_free(inventory.units)})'
        )


def _free_in_sets(
    suited: Iterable[Inventory], join: link_places.Join
) -> dict[tuple[str, str], int]:
    """(Hostname, set) -> the free units in each set that can join so many."""
    found: dict[tuple[str, str], int] = {}
    for inventory in suited:
        for place in _sets(inventory, join):
            key = inventory.hostname, place
            found[key] = found.get(key, 0) + inventory.free
    return found


def _sets(inventory: Inventory, join: link_places.Join) -> set[str]:
    """The sets of the provider that can join so many."""
    return {
        place
        for place in inventory.link_sets
        if join in link_places.joins(place)
    }


def _not_joined(
    group: device_profile.Group,
    inventory: Inventory,
    joined: int,
    in_sets: Mapping[tuple[str, str], int],
) -> Iterable[str]:
    """Why no set that the provider is in can serve the group.

    :param in_sets: the free units that suit the group
    """
    sets = _sets(inventory, (group.link or '', joined))
    if not sets:
        yield f'no set that joins {joined} by {group.link} has it'
        return
    wanted = group.resources[inventory.resource_class]
    free = max(in_sets.get((inventory.hostname, place), 0) for place in sets)
    if free < wanted:
        yield (
            f'{wanted} wanted, {free} free in the set that joins {joined} '
            f'by {group.link}'
        )


def _not_free(units: Mapping[str | None, int]) -> str:
    return ', '.join(
        f'{amount} {why}' for why, amount in units.items() if why is not None
    )


@dataclasses.dataclass(frozen=True)
class CheckedUnits:
    """Identical units of one provider.

    ``is_published`` says whether Placement counts them by the status of their
    device.
    """

    hostname: str
    rp_uuid: str
    resource_class: str
    traits: frozenset[str]
    device_uuid: str
    device_address: str
    is_silent: bool
    why_not_free: str | None
    amount: int
    link_sets: tuple[str, ...] = ()
    is_published: bool = True

    @property
    def reason(self) -> str | None:
        """Why nobody gets them now, None if somebody can."""
        if self.why_not_free is None and not self.is_published:
            return f'reserved in Placement until host {self.hostname} reports'
        return self.why_not_free


def inventories(units: Sequence[CheckedUnits]) -> list[Inventory]:
    """The inventories to which the units belong, sorted by host.

    The inventory of a pool has all devices of the pool and all their traits.
    """
    of_one: dict[tuple[str, str, str], list[CheckedUnits]] = {}
    for some in units:
        of_one.setdefault(
            (some.hostname, some.rp_uuid, some.resource_class), []
        ).append(some)
    found = []
    for key, parts in sorted(of_one.items()):
        amounts: collections.Counter[str | None] = collections.Counter()
        for part in parts:
            amounts[part.reason] += part.amount
        found.append(
            Inventory(
                *key,
                _OF_ALL.union(*(part.traits for part in parts)),
                tuple(dict.fromkeys(part.device_uuid for part in parts)),
                # A deployable may have no units at the moment.
                {why: amount for why, amount in amounts.items() if amount},
                any(part.is_silent for part in parts),
                parts[0].link_sets,
                tuple(dict.fromkeys(part.device_address for part in parts)),
            )
        )
    return found
