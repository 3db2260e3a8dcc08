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

"""The groups of a device profile as Placement is asked for them.

A group that is larger than every pool of devices becomes several groups.
Groups that have to be joined become groups beside the one of the set that
joins them, or a group whose provider is such a set.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import our_group
from nova_accel.scheduler import set_group

#: How many answers are remembered.
_REMEMBERED = 256


class AskedGroup(NamedTuple):
    """A group for one provider.

    ``group`` is that of the profile, or a part of it. ``trait`` is the one
    that the provider has to have as a set of joined devices. ``share`` is what
    the group takes of its card, 0 if it shares none.
    """

    requester_id: str
    group: device_profile.Group
    trait: str | None = None
    share: int = 0


class AskedSet(NamedTuple):
    """A set of joined devices: a provider that is above those of groups."""

    requester_id: str
    trait: str
    members: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Asked:
    """All that Placement is asked for."""

    groups: Sequence[AskedGroup]
    sets: Sequence[AskedSet] = ()

    @functools.cached_property
    def required(self) -> frozenset[str]:
        """The traits that groups of the profile require."""
        return frozenset().union(
            *(each.group.required for each in self.groups)
        )

    @functools.cached_property
    def forbidden(self) -> frozenset[str]:
        """The traits that groups of the profile forbid."""
        return frozenset().union(
            *(each.group.forbidden for each in self.groups)
        )

    @functools.cached_property
    def traits(self) -> frozenset[str]:
        """All traits that matter."""
        return (
            self.required
            | self.forbidden
            | self.link_traits.keys()
            | {naming.OWNERSHIP_TRAIT}
        )

    @functools.cached_property
    def link_traits(self) -> Mapping[str, tuple[str, ...]]:
        """The trait of each set -> the groups that it joins."""
        return {
            **{
                group.trait: (group.requester_id,)
                for group in self.groups
                if group.trait is not None
            },
            **{each.trait: each.members for each in self.sets},
        }

    def request_groups(self) -> list[our_group.OurGroup]:
        """The request groups, for one request."""
        return [each.copy() for each in self._request_groups]

    @functools.cached_property
    def _request_groups(self) -> Sequence[our_group.OurGroup]:
        return [
            *(
                our_group.make(
                    requester_id,
                    group,
                    () if trait is None else (trait,),
                    share,
                )
                for requester_id, group, trait, share in self.groups
            ),
            *(
                set_group.make(each.requester_id, each.trait)
                for each in self.sets
            ),
        ]


def whole(
    groups: Sequence[device_profile.Group], port_uuid: str = ''
) -> Asked:
    """The groups as they are, since Nova's client for Cyborg knows them.

    :param port_uuid: the port that has the profile, empty for the flavor's
    :raises NotFound: a joined group is larger than every pool
    """
    found = _Found(port_uuid)
    for index, group in enumerate(groups):
        if group.link is None:
            found.add(index, (group,), share=_share(group))
    for link, members in link_division.by_link(groups).items():
        joined = link_division.joined(members, _largest)
        for index, parts in joined.parts.items():
            if len(parts) > 1:
                raise exceptions.NotFound(
                    f'no pool of devices has '
                    f'{link_division.describe(link, [members[index]])}, and '
                    f'{device_profile.CYBORG_FLAVOR_KEY} takes no more than a '
                    f'pool: use {device_profile.FLAVOR_KEY} in the flavor'
                )
        found.join(joined)
    return found.asked()


def placeable(groups: Sequence[device_profile.Group]) -> Asked:
    """The groups, or their parts.

    A group stays whole if no size of a pool is known for it: the database
    gives no answer, or an operator has given the required traits to providers
    in Placement.

    :raises NotFound: a group is too large; the text names it
    """
    joined = {
        link: link_division.amount(members.values())
        for link, members in link_division.by_link(groups).items()
    }
    return _placeable(
        tuple(groups),
        tuple(
            _largest(group, joined.get(group.link or '', 0))
            for group in groups
        ),
        tuple(map(_share, groups)),
    )


@functools.lru_cache(_REMEMBERED)
def _placeable(
    groups: tuple[device_profile.Group, ...],
    largest: tuple[int, ...],
    shares: tuple[int, ...],
) -> Asked:
    """As :func:`placeable`.

    :param largest: the most units that a pool has for each group
    :param shares: what a unit of each group takes of its card
    """
    found = _Found()
    sizes = dict(zip(groups, largest, strict=True))
    divided = link_division.divided(groups, lambda group, _all: sizes[group])
    for index, parts in divided.alone.items():
        found.add(index, parts, share=shares[index])
    for joined in divided.sets:
        found.join(joined)
    return found.asked()


class _Found:
    """The groups and sets, while they are collected."""

    def __init__(self, port_uuid: str = '') -> None:
        self._port_uuid = port_uuid
        self._groups: dict[int, list[AskedGroup]] = {}
        self._sets: list[AskedSet] = []

    def add(
        self,
        index: int,
        parts: Sequence[device_profile.Group],
        trait: str | None = None,
        share: int = 0,
    ) -> None:
        self._groups[index] = [
            AskedGroup(
                requester_id, part, trait, share * sum(part.resources.values())
            )
            for requester_id, part in zip(
                self._ids(index, len(parts)), parts, strict=True
            )
        ]

    def join(self, joined: link_division.JoinedGroups) -> None:
        trait = joined.trait if joined.is_one else None
        for index, parts in joined.parts.items():
            self.add(index, parts, trait)
        if not joined.is_one:
            self._sets.append(
                AskedSet(
                    device_profile.set_requester_id(
                        min(joined.parts), self._port_uuid
                    ),
                    joined.trait,
                    tuple(
                        group.requester_id
                        for index in joined.parts
                        for group in self._groups[index]
                    ),
                )
            )

    def _ids(self, index: int, parts: int) -> Iterator[str]:
        for number in range(parts):
            yield device_profile.requester_id(
                index, self._port_uuid, number if parts > 1 else None
            )

    def asked(self) -> Asked:
        """All that was found, in the order of the profile."""
        return Asked(
            [
                group
                for _index, groups in sorted(self._groups.items())
                for group in groups
            ],
            self._sets,
        )


def _largest(group: device_profile.Group, joined: int = 0) -> int:
    """The most units that a pool has for the group; 0 if that is unknown.

    :param joined: how many devices have to be joined, if the group has a link
    """
    wanted = sum(group.resources.values())
    if wanted == 1:
        return 1
    return _known(lambda known: known.largest(group, joined), wanted) or 0


def _share(group: device_profile.Group) -> int:
    """The share of its card that a unit takes, 0 if it shares none.

    It is the largest amount of all products. So Placement never gives more
    than any card has.

    :raises NotFound: no card is known that can take the shape
    :raises ServiceUnavailable: the database gives no answer
    """
    [*shapes] = filter(naming.is_shape_class, group.resources)
    if not shapes:
        return 0
    share = _known(lambda known: known.share(group), 1)
    if share is None:
        raise exceptions.ServiceUnavailable.for_all(
            'the database of accelerators gave no answer'
        )
    if not share:
        raise exceptions.NotFound.for_all(
            f'no host has a card that can be {", ".join(shapes)}, with the '
            'traits that the group requires'
        )
    return share


def _known(
    number: Callable[[known_units.KnownUnits], int], least: int
) -> int | None:
    """A number by what is known; the database is asked if it is too small.

    :returns: None while the database gives no answer
    """
    found = None
    for max_age_s in (known_stock.DECIDING_S, known_stock.FRESH_S):
        known = known_stock.current(max_age_s)
        found = None if known is None else number(known)
        if found is not None and found >= least:
            break
    return found
