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

"""The slices that a card can still make, and the one that breaks least.

Each function takes the slices that a card ``offered``, and those that guests
have ``taken``. Its result is kept, since most cards are like others. It is
found again in a microsecond if the caller keeps frozensets, whose hashes are
known.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from collections.abc import Set
import functools
from typing import NamedTuple

from nova_accel.model.cards import card_slice

_Slices = frozenset[card_slice.CardSlice]

# So many different cards are kept, with so many of each one's contents.
_MOST_CARDS = 64
_MOST_CONTENTS = 4096


class Harm(NamedTuple):
    """The harm of a choice; the smaller one is better, on any card.

    ``order`` is, to pack, 1 for an empty card, so that it is broken last. To
    spread, it is how much of the card is taken. ``lost`` is the memory of all
    slices together that the card could still make before: slices overlap, so
    large ones that are broken weigh most. ``left`` is the memory that stays
    free, so that full cards come first.
    """

    order: int
    lost: int
    left: int


def add_up(harms: Sequence[Harm]) -> Harm:
    """The harm of several choices, each of another card."""
    return Harm(
        sum(each.order for each in harms),
        sum(each.lost for each in harms),
        sum(each.left for each in harms),
    )


def free(
    offered: Iterable[card_slice.CardSlice],
    taken: Iterable[card_slice.CardSlice],
) -> list[card_slice.CardSlice]:
    """The slices that no taken one excludes, the least harm first."""
    return list(_harms(_kept(frozenset(offered)), frozenset(taken), True))


def harm(
    chosen: card_slice.CardSlice,
    offered: Iterable[card_slice.CardSlice],
    taken: Iterable[card_slice.CardSlice],
    is_packed: bool = True,
) -> Harm:
    """The cost of choosing a free slice.

    :param is_packed: whether cards are filled one after the other
    """
    harms = _harms(_kept(frozenset(offered)), frozenset(taken), is_packed)
    return harms[chosen]


def best(
    shape: str,
    offered: Iterable[card_slice.CardSlice],
    taken: Iterable[card_slice.CardSlice],
    is_packed: bool = True,
) -> card_slice.CardSlice | None:
    """The free slice of a shape with the least harm.

    :returns: None if no slice of the shape is free
    """
    for each in _harms(_kept(frozenset(offered)), frozenset(taken), is_packed):
        if each.shape == shape:
            return each
    return None


def obstacle(
    wanted: card_slice.CardSlice, taken: Set[card_slice.CardSlice]
) -> str:
    """Why taken slices exclude another one, in words for tenants.

    :param wanted: one of the shape
    :returns: to follow a number of units: ``on cards that are whole``
    """
    modes = sorted({each.mode for each in taken} - {wanted.mode})
    if modes:
        return f'on cards that are {modes[0]}'
    left = card_slice.WHOLE_CARD - sum(each.size for each in taken)
    return f'on cards with {100 * left // card_slice.WHOLE_CARD} % free' + (
        ', not in one piece' if left >= wanted.size else ''
    )


@functools.lru_cache(_MOST_CARDS)
def _kept(offered: _Slices) -> _Slices:
    """One set for all that are equal, so that it is kept once."""
    return offered


@functools.lru_cache(_MOST_CONTENTS)
def _harms(
    offered: _Slices, taken: _Slices, is_packed: bool
) -> dict[card_slice.CardSlice, Harm]:
    """The cost of each free slice, the least first."""
    in_use = sum(each.size for each in taken)
    able = [
        each
        for each in sorted(offered)
        if not any(each.excludes(other) for other in taken)
    ]
    harms = {
        chosen: Harm(
            int(not taken) if is_packed else in_use,
            sum(each.size for each in able if each.excludes(chosen)),
            card_slice.WHOLE_CARD - in_use - chosen.size,
        )
        for chosen in able
    }
    return dict(sorted(harms.items(), key=lambda item: item[1]))
