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

"""Why no host can serve the groups of a device profile, in a few words.

Tenants read the text, so it names no host and quotes no device. It has the
group, the cause, and the nearest miss: what would be had if the group asked
for one thing less.

As in Placement, one resource provider serves a whole group.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import re
import types
from typing import NamedTuple

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation

#: GPUs of a fabric, without ``accel:link``.
_FABRIC = (
    'a fabric joins all of them, and gives several to one server only if the '
    'device profile has accel:link=nvlink'
)

_SILENT = 'on hosts that do not report'

#: The beginning of a trait, where there is no room for the whole name.
_LONG_NAME = re.compile(r'\b(CUSTOM_[A-Z0-9_]{25})[A-Z0-9_]{4,}')

#: How many traits of a group a text names.
_MAX_TRAITS = 3


class Shortage(NamedTuple):
    """Why a group cannot be served, and the nearest miss, if there is one."""

    cause: str
    nearest: str | None = None

    def __str__(self) -> str:
        if self.nearest is None:
            return self.cause
        return f'{self.cause}, nearest: {self.nearest}'


class Unmet(NamedTuple):
    """The units that are wanted in words, and why there are none."""

    wanted: str
    shortage: Shortage


_NOTHING_JOINED: Mapping[str, Unmet] = types.MappingProxyType({})

#: Placement has nothing free, and the hosts have.
CLAIMED = Shortage('the free ones are being handed out')

#: They are free again, and their host has not told Placement.
RESERVED = Shortage(
    'free, but Placement still reserves them until a host reports'
)


def alone(
    groups: Mapping[str, device_profile.Group],
    inventories: Sequence[explanation.Inventory],
    max_length: int,
    joined: Mapping[str, Unmet] = _NOTHING_JOINED,
) -> str:
    """Why the groups cannot be served, each by itself.

    :param groups: by their names
    :param inventories: all that is known of the groups' resource classes, with
        reasons for tenants
    :param joined: groups that are to be joined, by the name of the first one
    :returns: at most ``max_length`` characters, with the causes
    """
    unmet = dict(joined)
    for name, group in groups.items():
        unmet[name] = Unmet(
            _wanted(group), find(group, inventories) or CLAIMED
        )
    return _first_short(
        max_length,
        '; '.join(
            f'{name} ({each.wanted}): {each.shortage}'
            for name, each in sorted(unmet.items())
        ),
        '; '.join(
            f'{name}: {each.shortage}' for name, each in sorted(unmet.items())
        ),
        causes := '; '.join(
            f'{name}: {each.shortage.cause}'
            for name, each in sorted(unmet.items())
        ),
        _LONG_NAME.sub(r'\1...', causes),
    )


def together(
    groups: Mapping[str, device_profile.Group],
    inventories: Sequence[explanation.Inventory],
    max_length: int,
) -> str:
    """Why no host can serve all groups, each of which some host can.

    :returns: at most ``max_length`` characters
    """
    names = f'no host has {", ".join(groups)} free together'
    missing = _nearest_host(groups, inventories)
    if not missing:
        return _first_short(
            max_length, f'{names}: they want the same devices', names
        )
    return _first_short(
        max_length,
        f'{names}, nearest: one lacks '
        + '; '.join(
            f'{name}: {shortage.cause}' for name, shortage in missing.items()
        ),
        f'{names}, nearest: one lacks {", ".join(missing)}',
        names,
    )


def _first_short(max_length: int, *texts: str) -> str:
    """The first text that is short enough, or the beginning of the last."""
    for text in texts:
        if len(text) <= max_length:
            return text
    return texts[-1][: max(0, max_length - 3)] + '...'


def find(
    group: device_profile.Group,
    inventories: Sequence[explanation.Inventory],
) -> Shortage | None:
    """Why no provider can serve the group, None if one can."""
    if len(group.resources) > 1:
        return Shortage(f'no device has {_and(sorted(group.resources))}')
    [(resource_class, wanted)] = group.resources.items()
    there = [
        each for each in inventories if each.resource_class == resource_class
    ]
    if not there:
        return Shortage(f'no host has {resource_class}')
    suited = [each for each in there if _misfits(group, each) == []]
    if not suited:
        return Shortage(
            _why_unsuited(group, resource_class, there),
            _without_a_trait(group, wanted, there),
        )
    most = max(each.total for each in suited)
    if most < wanted:
        return Shortage(
            f'{wanted} wanted at one place, and the largest has {most}: '
            'make smaller groups of it',
            _without_a_trait(group, wanted, there),
        )
    large = [each for each in suited if each.total >= wanted]
    free = [each for each in large if each.free >= wanted]
    if free:
        return RESERVED if all(each.is_unpublished for each in free) else None
    return Shortage(
        _why_not_free(large),
        _fewer(large) or _without_a_trait(group, wanted, there),
    )


def first_cause(
    groups: Iterable[device_profile.Group],
    inventories: Sequence[explanation.Inventory],
) -> str | None:
    """Why the first group cannot be served that no provider can serve."""
    shortages = (find(group, inventories) for group in groups)
    return next((each.cause for each in shortages if each is not None), None)


def not_free(
    groups: Sequence[device_profile.Group],
    inventories: Iterable[explanation.Inventory],
) -> dict[tuple[str, str], int]:
    """(Resource class, reason) -> units that suit a group and are not free."""
    amounts: collections.Counter[tuple[str, str]] = collections.Counter()
    for each in inventories:
        if any(
            each.resource_class in group.resources
            and not _misfits(group, each)
            for group in groups
        ):
            for why, amount in _obstacles(each):
                amounts[each.resource_class, why] += amount
    return dict(amounts)


def _nearest_host(
    groups: Mapping[str, device_profile.Group],
    inventories: Sequence[explanation.Inventory],
) -> dict[str, Shortage]:
    """The groups that a host lacks that lacks fewest of them."""
    hosts: dict[str, list[explanation.Inventory]] = {}
    for each in inventories:
        hosts.setdefault(each.hostname, []).append(each)
    return min(
        (
            {
                name: shortage
                for name, group in groups.items()
                if (shortage := find(group, there)) is not None
            }
            for there in hosts.values()
        ),
        key=len,
        default={},
    )


def _misfits(
    group: device_profile.Group, inventory: explanation.Inventory
) -> list[str]:
    """The traits for which a provider cannot serve the group."""
    return sorted(
        (group.required - inventory.traits)
        | (group.forbidden & inventory.traits)
    )


def _why_unsuited(
    group: device_profile.Group,
    resource_class: str,
    there: Sequence[explanation.Inventory],
) -> str:
    nowhere = group.required.difference(*(each.traits for each in there))
    if nowhere:
        return f'no {resource_class} has {_some(nowhere)}'
    everywhere = frozenset.intersection(
        group.forbidden, *(each.traits for each in there)
    )
    if naming.FABRIC_TRAIT in everywhere:
        return _FABRIC
    if everywhere:
        return (
            f'each {resource_class} has what is forbidden: {_some(everywhere)}'
        )
    wanted = [
        *sorted(group.required),
        *(f'no {trait}' for trait in sorted(group.forbidden)),
    ]
    return f'no {resource_class} has all of {_and(wanted[:_MAX_TRAITS])}'


def _why_not_free(inventories: Sequence[explanation.Inventory]) -> str:
    amounts: collections.Counter[str] = collections.Counter()
    free = 0
    for each in inventories:
        free += each.free
        for why, amount in _obstacles(each):
            amounts[why] += amount
    if len(amounts) == 1 and not free:
        [(why, amount)] = amounts.items()
        return (
            f'all {amount} are {why}'
            if amount > 1
            else f'the only one is {why}'
        )
    told = [f'{amount} {why}' for why, amount in amounts.most_common()]
    if free:
        told.append(f'{free} free')
    return f'of {sum(amounts.values()) + free}, {_and(told)}'


def _obstacles(
    inventory: explanation.Inventory,
) -> Iterator[tuple[str, int]]:
    """Why units are not free, and how many."""
    for why, amount in inventory.units.items():
        if inventory.is_silent:
            yield _SILENT, amount
        elif why is not None:
            yield why, amount


def _fewer(inventories: Sequence[explanation.Inventory]) -> str | None:
    most = max(each.free for each in inventories)
    return f'{most} free at one place' if most else None


def _without_a_trait(
    group: device_profile.Group,
    wanted: int,
    there: Sequence[explanation.Inventory],
) -> str | None:
    """The trait but for which most units are free."""
    free: collections.Counter[str] = collections.Counter()
    for each in there:
        misfits = _misfits(group, each)
        if len(misfits) == 1 and each.free >= wanted:
            free[misfits[0]] += each.free
    if not free:
        return None
    [(trait, amount)] = free.most_common(1)
    if trait == naming.FABRIC_TRAIT:
        return f'{amount} free with accel:link=nvlink'
    return (
        f'{amount} free '
        f'{"with" if trait in group.forbidden else "without"} {trait}'
    )


def _wanted(group: device_profile.Group) -> str:
    """``FPGA=1, CUSTOM_A, no CUSTOM_B``"""
    return ', '.join(
        [
            *(
                f'{resource_class}={amount}'
                for resource_class, amount in sorted(group.resources.items())
            ),
            *sorted(group.required - {naming.OWNERSHIP_TRAIT}),
            *(
                f'no {trait}'
                for trait in sorted(group.forbidden - {naming.FABRIC_TRAIT})
            ),
        ]
    )


def _some(traits: Collection[str]) -> str:
    return _and(sorted(traits)[:_MAX_TRAITS])


def _and(words: Sequence[str]) -> str:
    *others, last = words
    return f'{", ".join(others)} and {last}' if others else last
