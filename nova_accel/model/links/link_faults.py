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

"""The parts of a set of NVLink that are still joined, while links have failed.

Between GPUs without NVSwitches each link joins two of them. A set with a link
that is down is no longer joined as a whole, and neither are those of its parts
that have both ends of the link. All others still are. So the set is divided
into parts without such a link. Servers of two and of four GPUs are the usual
ones, so many pairs are better than one large part: of four GPUs with one link
down, two pairs are left.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
from typing import NamedTuple

from nova_accel.model import link_sets

Kind = link_sets.Kind


class FaultyPart(NamedTuple):
    """GPUs of a set that are still joined.

    ``place`` are all devices of their place in the tree: network cards are
    with the GPUs of their switches.
    """

    members: frozenset[str]
    place: frozenset[str]


def marked(
    sets: Iterable[link_sets.LinkSet], down: Collection[frozenset[str]]
) -> Iterator[link_sets.LinkSet]:
    """The sets with the pairs of their members that are not joined now.

    Fabric Manager itself says which partitions it cannot join.

    :param down: the pairs of GPUs whose links have failed
    """
    for each in sets:
        if each.kind is Kind.NVLINK and not each.is_exact:
            yield dataclasses.replace(
                each,
                down=frozenset(pair for pair in down if pair <= each.members),
            )
        else:
            yield each


def parts(
    faulty: link_sets.LinkSet,
    place: frozenset[str],
    places: Collection[frozenset[str]],
) -> Iterator[FaultyPart]:
    """Disjoint parts of a set, of which each two members are still joined.

    No two of them could be one part, and none crosses a place of the tree.

    :param faulty: a set with pairs that are down
    :param place: its place in the tree
    :param places: all places of the tree
    """
    apart: dict[str, set[str]] = {}
    for pair in faulty.down:
        for one, other in itertools.permutations(pair):
            apart.setdefault(one, set()).add(other)
    for part in _within(faulty.members, place, places, apart):
        if len(part.members) > 1:
            yield part


def _within(
    members: frozenset[str],
    place: frozenset[str],
    places: Collection[frozenset[str]],
    apart: Mapping[str, Collection[str]],
) -> Iterator[FaultyPart]:
    """The parts of the members in one place.

    A smaller place is in a part as a whole. It is divided itself only if a
    link within it is down.
    """
    left = members & place
    found = []
    for inner in _largest(each for each in places if each < place):
        inside = members & inner
        left -= inside
        if not inside:
            continue
        if _is_joined(inside, inside, apart):
            found.append(FaultyPart(inside, inner))
        else:
            yield from _within(members, inner, places, apart)
    found += (
        FaultyPart(frozenset({name}), frozenset({name})) for name in left
    )
    yield from _merged(found, apart)


def _largest(places: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The places of a tree that are within no other one."""
    found: list[frozenset[str]] = []
    for place in sorted(places, key=len, reverse=True):
        if not any(place <= other for other in found):
            found.append(place)
    return found


def _is_joined(
    some: frozenset[str],
    others: frozenset[str],
    apart: Mapping[str, Collection[str]],
) -> bool:
    return all(others.isdisjoint(apart.get(name, ())) for name in some)


def _merged(
    found: Sequence[FaultyPart], apart: Mapping[str, Collection[str]]
) -> list[FaultyPart]:
    """The parts, of which small ones are made one as long as they may be.

    Parts that fit few others come first, so that they are not left over.
    """
    merged = list(found)
    while True:
        pairs = [
            (one, other)
            for one, other in itertools.combinations(merged, 2)
            if _is_joined(one.members, other.members, apart)
        ]
        if not pairs:
            return merged
        fits = [part for pair in pairs for part in pair]
        one, other = min(
            pairs,
            key=lambda pair: (
                sum(len(part.members) for part in pair),
                sum(map(fits.count, pair)),
                sorted(sorted(part.members) for part in pair),
            ),
        )
        merged.remove(one)
        merged.remove(other)
        merged.append(
            FaultyPart(one.members | other.members, one.place | other.place)
        )
