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

"""The places of a host's link sets, as devices tell them to nova-scheduler.

A device is in several places, the largest first. Each is told as one text: the
name of the place, and for each kind of link how many devices it can join. So
nova-scheduler knows what a host can join without asking Placement::

    numa0 numa=2-8
    pcie_9f86d081884c7d65 nvlink=2 pcie=2-3
"""

from collections.abc import Iterable
from collections.abc import Mapping
import functools
import re

from nova_accel.model import link_sets

_SIZES = re.compile(r'([a-z]{1,8})=([0-9]{1,2})(?:-([0-9]{1,2}))?')

#: A kind of link, and a number of devices that can be joined by it.
Join = tuple[str, int]


def to_text(name: str, sizes: Mapping[str, range]) -> str:
    """The text of a place.

    :param sizes: kind -> the numbers of devices that it can join; an empty one
        is left out
    """
    return ' '.join([name, *_joined(sizes)])


def _joined(sizes: Mapping[str, range]) -> list[str]:
    return [
        f'{kind}={of_kind[0]}'
        if len(of_kind) == 1
        else f'{kind}={of_kind[0]}-{of_kind[-1]}'
        for kind, of_kind in sizes.items()
        if of_kind
    ]


@functools.lru_cache(maxsize=4096)
def joins(place: str) -> frozenset[Join]:
    """The joins that a place can give.

    A malformed part gives none, and neither do sizes that no request has.
    """
    _name, *texts = place.split(' ')
    found: set[Join] = set()
    for text in texts:
        match = _SIZES.fullmatch(text)
        if match:
            kind, least, most = match.groups()
            found.update(
                (kind, size)
                for size in range(
                    int(least), min(int(most or least), link_sets.MAX_SIZE) + 1
                )
            )
    return frozenset(found)


def sizes(kind: str, places: Iterable[str]) -> list[int]:
    """The numbers of devices that some of the places can join, sorted."""
    return sorted(
        {
            size
            for place in places
            for of_kind, size in joins(place)
            if of_kind == kind
        }
    )


def of_places(places: tuple[str, ...]) -> frozenset[Join]:
    """The joins that any of the places can give."""
    return frozenset[Join]().union(*map(joins, places))
