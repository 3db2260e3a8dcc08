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

"""Divide joined groups for Placement, and find the set that joins them.

All groups of a profile with the same ``accel:link`` are joined in one set of
devices. If one pool serves all of it, the pool itself has the trait of such a
set. Otherwise the groups are asked for in parts, beside a group without
resources: the provider of the set, above the pools of all parts.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import group_division

#: How a text for people names what joins devices.
_WORDS = {
    link_sets.Kind.NVLINK: 'NVLink',
    link_sets.Kind.PCIE: 'one PCIe switch',
    link_sets.Kind.NUMA: 'one NUMA node',
}

#: Units of these classes are never GPUs, which a fabric joins.
_NO_GPUS = frozenset(
    resource_class
    for type_, resource_class in naming.RESOURCE_CLASSES.items()
    if type_ not in ('GPU', 'VGPU')
)


class JoinedGroups(NamedTuple):
    """The groups of a profile that one set has to join.

    ``parts`` maps the index of a group to its parts. ``trait`` is the one of
    the set. If there is one part, the provider of the part has the trait.
    """

    trait: str
    parts: Mapping[int, tuple[device_profile.Group, ...]]

    @property
    def is_one(self) -> bool:
        """Whether one provider serves all of it."""
        return sum(map(len, self.parts.values())) == 1


class DividedGroups(NamedTuple):
    """The groups of a profile in parts, each of which a provider can serve.

    ``alone`` maps the index of a group without a link to its parts.
    """

    alone: Mapping[int, tuple[device_profile.Group, ...]]
    sets: Sequence[JoinedGroups]

    @property
    def parts(self) -> Iterator[device_profile.Group]:
        """All parts, those without a link first."""
        for indexed in (self.alone, *(each.parts for each in self.sets)):
            for parts in indexed.values():
                yield from parts


def divided(
    groups: Sequence[device_profile.Group],
    largest: Callable[[device_profile.Group, int], int],
) -> DividedGroups:
    """The parts of all groups of a profile.

    :param largest: as :func:`joined` takes it; no device has to be joined for
        a group without a link
    :raises NotFound: a group is too large; the text names it
    """
    return DividedGroups(
        {
            index: group_division.placeable(index, group, largest(group, 0))
            for index, group in enumerate(groups)
            if group.link is None
        },
        [joined(members, largest) for members in by_link(groups).values()],
    )


def amount(groups: Iterable[device_profile.Group]) -> int:
    """How many units the groups ask for together."""
    return sum(sum(group.resources.values()) for group in groups)


def by_link(
    groups: Sequence[device_profile.Group],
) -> dict[str, dict[int, device_profile.Group]]:
    """Link -> the groups that are joined by it, with their indices."""
    found: dict[str, dict[int, device_profile.Group]] = {}
    for index, group in enumerate(groups):
        if group.link is not None:
            found.setdefault(group.link, {})[index] = group
    return found


def joined(
    groups: Mapping[int, device_profile.Group],
    largest: Callable[[device_profile.Group, int], int],
) -> JoinedGroups:
    """The parts of groups that have the same link.

    :param groups: with their indices in the profile
    :param largest: tells how many units the largest pool has for a group, of
        those in sets that can join so many devices; 0 if none is known
    :raises NotFound: a group would have too many parts; the text names the
        link and the number of devices
    """
    [link] = {group.link for group in groups.values() if group.link}
    size = amount(groups.values())
    parts = {
        index: group_division.parts(group, largest(group, size))
        for index, group in groups.items()
    }
    most = max(group_division.MAX_PARTS, len(groups))
    if sum(map(len, parts.values())) > most:
        raise exceptions.NotFound(
            f'{describe(link, groups.values())} are in too many pools of '
            f'devices, {most} are the most: ask for fewer'
        )
    return JoinedGroups(naming.link_trait(link, size), parts)


def describe(link: str, groups: Iterable[device_profile.Group]) -> str:
    """Joined units in words, such as ``PGPU=4 joined by NVLink``."""
    amounts: dict[str, int] = {}
    for group in groups:
        for resource_class, units in group.resources.items():
            amounts[resource_class] = amounts.get(resource_class, 0) + units
    return (
        ' and '.join(
            f'{resource_class}={units}'
            for resource_class, units in sorted(amounts.items())
        )
        + f' joined by {_WORDS[link_sets.Kind(link)]}'
    )


def off_fabric(
    groups: Sequence[device_profile.Group],
) -> tuple[device_profile.Group, ...]:
    """The groups; none gets a part of a fabric that is no set of its own.

    A fabric gives a guest one GPU, or one of its sets. So if a profile asks
    for several GPUs, only those that are joined by NVLink may be in a fabric.
    """
    could_be_gpus = sum(
        units
        for group in groups
        for resource_class, units in group.resources.items()
        if resource_class not in _NO_GPUS
    )
    if could_be_gpus < 2:
        return tuple(groups)
    return tuple(
        group
        if group.link == link_sets.Kind.NVLINK
        or group.resources.keys() <= _NO_GPUS
        else dataclasses.replace(
            group, forbidden=group.forbidden | {naming.FABRIC_TRAIT}
        )
        for group in groups
    )
