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

"""Make the one tree of a host's link sets.

Sets of NVLink are placed first, then those of PCIe switches, of root complexes
and of NUMA nodes. Among those of one kind, the larger ones come first. A set
that crosses one that has a place gets none. Parts of a set with failed links
come last, so that they take no place from another set.

GPUs are joined by NVLink, and network cards are not. A PCIe switch with some
GPUs of an NVLink set and a network card would cross that set. But it only
matters where the GPUs are. So the network card joins the place of the NVLink
set, and the switch is a part of it.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import hashlib
import types
from typing import NamedTuple

from nova_accel.model import link_sets
from nova_accel.model.links import link_discovery
from nova_accel.model.links import link_faults

Kind = link_sets.Kind

_ORDER = list(Kind)

_NO_CLASSES: Mapping[str, str] = types.MappingProxyType({})


class BuiltTree(NamedTuple):
    """The tree, and texts about the sets that have no place in it."""

    tree: link_sets.SetTree
    left_out: tuple[str, ...] = ()


def build(
    sets: Iterable[link_sets.LinkSet],
    classes: Mapping[str, str] = _NO_CLASSES,
) -> BuiltTree:
    """The tree of these sets; the same for any order of them.

    :param classes: device -> its resource class. No device joins the place of
        an NVLink set that has devices of its class, because servers that ask
        for the set could get it.
    """
    found = list(sets)
    builder = _Builder(found, classes)
    left_out = tuple(
        complaint
        for each in sorted(found, key=_rank)
        if len(each.members) > 1
        and (complaint := builder.add(each)) is not None
        # No one asks for these.
        and each.kind is not Kind.ROOT
    )
    for each in sorted(found, key=_rank):
        if each.down:
            left_out += tuple(builder.divide(each))
    return BuiltTree(
        link_sets.SetTree(
            builder.nodes(),
            frozenset[str]().union(
                *(each.members for each in found if each.is_exact)
            ),
        ),
        left_out,
    )


def _rank(each: link_sets.LinkSet) -> tuple[object, ...]:
    return (
        _ORDER.index(each.kind),
        -len(each.members),
        not each.is_exact,
        sorted(each.members),
        not each.is_able,
        each.name,
        sorted(map(sorted, each.down)),
    )


@dataclasses.dataclass(frozen=True)
class _Place:
    """A place of the tree, as a node but without a name."""

    members: frozenset[str]
    sets: tuple[link_sets.LinkSet, ...]


class _Builder:
    """The places, to which one set after the other is added."""

    def __init__(
        self, sets: Sequence[link_sets.LinkSet], classes: Mapping[str, str]
    ) -> None:
        self._classes = classes
        self._places: list[_Place] = []
        self._with_nvlink = frozenset[str]().union(
            *(each.members for each in sets if each.kind is Kind.NVLINK)
        )

    def add(self, each: link_sets.LinkSet) -> str | None:
        """Give a set its place.

        :returns: why it has none, None if it has one
        """
        return self._put(
            each,
            each.members,
            [self._around(place, each) for place in self._places],
        )

    def divide(self, faulty: link_sets.LinkSet) -> Iterator[str]:
        """Give the parts of a set that are still joined their places.

        A set without a place of its own has no parts.

        :returns: why some of them have none
        """
        own = [place.members for place in self._places if faulty in place.sets]
        for place in own:
            for part in link_faults.parts(
                faulty, place, [place.members for place in self._places]
            ):
                complaint = self._put(
                    link_sets.LinkSet(
                        Kind.NVLINK,
                        part.members,
                        name=link_discovery.name_of(Kind.NVLINK, part.members),
                    ),
                    part.place,
                    list(self._places),
                )
                if complaint is not None:
                    yield complaint

    def _put(
        self,
        each: link_sets.LinkSet,
        members: frozenset[str],
        after: list[_Place],
    ) -> str | None:
        """Put a set into the place of these devices, old or new.

        :param after: the other places, as they are with the set
        :returns: as :meth:`add`
        """
        same = next(
            (place for place in after if place.members == members), None
        )
        if same is None:
            after.append(_Place(members, (each,)))
        elif any(other.kind is each.kind for other in same.sets):
            return None
        else:
            after[after.index(same)] = _Place(same.members, (*same.sets, each))
        after = list(_merged(after))
        changed = [place for place in after if place not in self._places]
        for place in changed:
            for other in after:
                if _cross(place.members, other.members):
                    return (
                        f'{_describe(each)} crosses '
                        f'{_describe(other.sets[0])}, and is not offered'
                    )
        if _depth(after, changed) > link_sets.MAX_DEPTH:
            return (
                f'{_describe(each)} is not offered: a device may be in '
                f'{link_sets.MAX_DEPTH} sets'
            )
        self._places = after
        return None

    def _around(self, place: _Place, each: link_sets.LinkSet) -> _Place:
        """The place with the devices of a set that joins it, if one may."""
        inside = each.members & self._with_nvlink
        others = each.members - self._with_nvlink
        if (
            each.kind is Kind.NVLINK
            or place.sets[0].kind is not Kind.NVLINK
            or not inside
            or not inside < place.members & self._with_nvlink
        ):
            return place
        theirs = {self._classes.get(name) for name in place.sets[0].members}
        if theirs.isdisjoint({self._classes.get(name, '') for name in others}):
            return _Place(place.members | others, place.sets)
        return place

    def nodes(self) -> tuple[link_sets.SetNode, ...]:
        return tuple(
            link_sets.SetNode(_name(place), place.members, place.sets)
            for place in sorted(
                self._places,
                key=lambda place: (
                    -len(place.members),
                    sorted(place.members),
                ),
            )
        )


def _merged(places: Iterable[_Place]) -> Iterator[_Place]:
    """The places, with one for all those of the same devices."""
    found: dict[frozenset[str], list[link_sets.LinkSet]] = {}
    for place in places:
        found.setdefault(place.members, []).extend(place.sets)
    for members, sets in found.items():
        yield _Place(members, tuple(sets))


def _cross(some: frozenset[str], others: frozenset[str]) -> bool:
    return not (some.isdisjoint(others) or some <= others or others <= some)


def _depth(places: Sequence[_Place], changed: Sequence[_Place]) -> int:
    """The most places that a device of the changed ones is in."""
    return max(
        (
            sum(name in place.members for place in places)
            for name in frozenset[str]().union(
                *(place.members for place in changed)
            )
        ),
        default=0,
    )


def _name(place: _Place) -> str:
    """The name of what is there whatever else is known, such as NUMA nodes.

    Switches and NUMA nodes are known at each start. NVLink may be learnt
    later, and should change no name.
    """
    last = max(place.sets, key=lambda each: _ORDER.index(each.kind))
    if last.name:
        return last.name[: link_sets.MAX_NAME]
    digest = hashlib.sha256(','.join(sorted(last.members)).encode())
    return f'{last.kind}_{digest.hexdigest()[:16]}'


def _describe(each: link_sets.LinkSet) -> str:
    members = sorted(each.members)
    most = 8
    names = ', '.join(members[:most]) + (', ...' if members[most:] else '')
    return f'the {each.kind} set {each.name or "of the operator"} ({names})'
