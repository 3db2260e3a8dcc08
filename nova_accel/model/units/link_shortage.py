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

"""Why no host can join devices for the groups of a device profile.

As in :mod:`nova_accel.model.units.shortage_reason`, tenants read the text.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import NamedTuple

from nova_accel.model import link_places
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import host_links
from nova_accel.model.units import shortage_reason


class _Of(NamedTuple):
    """A set of a host, with the units that suit a class of the groups."""

    total: int
    free: int


def doubts(
    groups: Sequence[device_profile.Group], places: Collection[str]
) -> Iterator[str]:
    """Sets that no host has: no server gets devices that are joined so.

    :param places: all sets of joined devices that hosts have
    """
    for link, joined in link_division.by_link(groups).items():
        size = link_division.amount(joined.values())
        sizes = link_places.sizes(link, places)
        if size not in sizes:
            there = f'sets of {_listed(sizes)}' if sizes else 'no such sets'
            yield (
                f'no host has {link_division.describe(link, joined.values())}'
                f', as {_groups(joined)}: hosts have {there}'
            )


def find(
    groups: Sequence[device_profile.Group],
    hosts: Sequence[host_links.HostLinks],
) -> shortage_reason.Shortage | None:
    """Why no set can serve the groups, None if one can.

    :param groups: or their parts; all have the same link
    :param hosts: the sets of all hosts that report
    """
    [link] = {group.link for group in groups if group.link}
    size = link_division.amount(groups)
    sizes = _sizes(link, hosts)
    if size not in sizes:
        return shortage_reason.Shortage(
            f'no set of a host joins {size}',
            f'sets of {_listed(sizes)}' if sizes else None,
        )
    found = list(_sets(link, size, groups, hosts))
    large = [
        of_set
        for of_set in found
        if _all(groups, [each.total for each in of_set])
    ]
    if not large:
        return shortage_reason.Shortage(
            f'no set that joins {size} has devices as they are asked for'
        )
    if any(_all(groups, [each.free for each in of_set]) for of_set in large):
        return None
    return shortage_reason.Shortage(
        f'the only set that joins {size} has not as many free'
        if len(large) == 1
        else f'none of {len(large)} sets that join {size} has as many free',
        _nearest(link, size, groups, hosts),
    )


def _all(
    groups: Sequence[device_profile.Group], amounts: Iterable[int]
) -> bool:
    """Whether there is enough for each group; classes are summed up."""
    wanted: dict[tuple[str, ...], int] = {}
    there: dict[tuple[str, ...], int] = {}
    for group, amount in zip(groups, amounts, strict=True):
        key = tuple(group.resources)
        wanted[key] = wanted.get(key, 0) + sum(group.resources.values())
        there[key] = max(there.get(key, 0), amount)
    return all(there[key] >= amount for key, amount in wanted.items())


def _sizes(link: str, hosts: Iterable[host_links.HostLinks]) -> list[int]:
    """The numbers of devices that some set can join."""
    return link_places.sizes(
        link,
        {
            place
            for host in hosts
            for units in host.pools.values()
            for each in units
            for place in each.sets
        },
    )


def _sets(
    link: str,
    size: int,
    groups: Sequence[device_profile.Group],
    hosts: Iterable[host_links.HostLinks],
) -> Iterator[list[_Of]]:
    """For each set that can join so many, its units for each group."""
    for host in hosts:
        # A pool may be in many sets, and its host decides in how many.
        of_pools: dict[str, list[_Of]] = {}
        for place in host.places(link, size):
            for rp_uuid in place.rp_uuids - of_pools.keys():
                of_pools[rp_uuid] = [
                    _of(group, host.pools[rp_uuid]) for group in groups
                ]
            yield [
                _Of(
                    sum(of_pool.total for of_pool in of_group),
                    sum(of_pool.free for of_pool in of_group),
                )
                for of_group in zip(
                    *(of_pools[rp_uuid] for rp_uuid in place.rp_uuids),
                    strict=True,
                )
            ]


def _of(
    group: device_profile.Group, units: Iterable[free_units.FreeUnits]
) -> _Of:
    suited = [
        each
        for each in units
        if each.resource_class in group.resources
        and group.required <= each.traits
        and group.forbidden.isdisjoint(each.traits)
    ]
    return _Of(
        sum(each.total for each in suited), sum(each.free for each in suited)
    )


def _nearest(
    link: str,
    size: int,
    groups: Sequence[device_profile.Group],
    hosts: Sequence[host_links.HostLinks],
) -> str | None:
    """A smaller set that is free, or as many devices that are not joined."""
    if len({tuple(group.resources) for group in groups}) > 1:
        return None
    [first, *_others] = groups
    for smaller in reversed(_sizes(link, hosts)):
        if smaller < size and any(
            of_set[0].free >= smaller
            for of_set in _sets(link, smaller, [first], hosts)
        ):
            return f'a set of {smaller} is free'
    most = max(
        _of(
            first, [each for units in host.pools.values() for each in units]
        ).free
        for host in hosts
    )
    return f'{most} free on one host, not joined' if most else None


def _groups(numbers: Collection[int]) -> str:
    listed = _listed(sorted(numbers))
    return (
        f'group {listed} asks for'
        if len(numbers) == 1
        else f'groups {listed} ask for'
    )


def _listed(sizes: Sequence[int]) -> str:
    return ', '.join(str(size) for size in sizes)
