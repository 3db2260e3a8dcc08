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

"""A picture of cards over time: what guests had of each, and what was idle."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import itertools
from typing import NamedTuple

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices
from pictures import canvas

#: Shape -> its colour, which can be told from both backgrounds.
COLOURS = {
    'whole': '#8f63c4',
    'vgpu:40C': '#2f6fc0',
    'vgpu:20C': '#4f9be0',
    'vgpu:10C': '#86c3ee',
    'mig:7g.80gb': '#1d6b45',
    'mig:4g.40gb': '#2f8f5b',
    'mig:3g.40gb': '#6f9a2d',
    'mig:2g.20gb': '#8fb93e',
    'mig:1g.20gb': '#b09a2c',
    'mig:1g.10gb': '#d3bc4e',
}

_STYLE = """\
<style>
  .room { fill: #e3e6ea }
  .stranded { fill: #d3273e }
  @media (prefers-color-scheme: dark) { .room { fill: #343b44 } }
</style>
"""

#: The end of the simulation is drawn, so many mean lives of a unit.
_LIVES = 3
_LIFE = 320
_ROW = 13
_LEFT = 60
_TOP = 76

_Slices = frozenset[card_slice.CardSlice]


class Life(NamedTuple):
    """A slice of a card, and from when to when a guest has it."""

    card: int
    has: card_slice.CardSlice
    begin: float
    end: float


def svg(offered: Sequence[_Slices], lives: Sequence[Life], now: float) -> str:
    """The picture.

    :param offered: by card
    :param now: the time until which ``lives`` has all units
    """
    begin = now - _LIVES
    of_cards: dict[int, list[Life]] = collections.defaultdict(list)
    for life in lives:
        if life.end > begin:
            of_cards[life.card].append(life)
    parts = [
        part
        for card, slices in enumerate(offered)
        for part in _row(card, slices, of_cards[card], begin, now)
    ]
    height = _TOP + len(offered) * _ROW
    return canvas.picture(
        _LEFT + _LIVES * _LIFE + 20,
        height + 44,
        _STYLE,
        *_legend(),
        *parts,
        *_axes(len(offered), height),
    )


def _row(
    card: int,
    offered: _Slices,
    lives: Sequence[Life],
    begin: float,
    now: float,
) -> Iterator[str]:
    def rectangle(
        style: str, start: float, end: float, memory: tuple[float, float]
    ) -> str:
        x, to_x = (
            _LEFT + (min(max(time, begin), now) - begin) * _LIFE
            for time in (start, end)
        )
        y, to_y = (
            _TOP + card * _ROW + place / card_slice.WHOLE_CARD * (_ROW - 1)
            for place in memory
        )
        return (
            f'<rect {style} x="{x:.1f}" y="{y:.2f}" '
            f'width="{to_x - x:.1f}" height="{to_y - y:.2f}"/>\n'
        )

    for start, end, taken in _contents(lives):
        if taken and end > begin:
            yield rectangle(
                'class="room"', start, end, (0, card_slice.WHOLE_CARD)
            )
            for memory in stranded(offered, taken):
                yield rectangle('class="stranded"', start, end, memory)
    for life in lives:
        yield rectangle(
            f'fill="{COLOURS[life.has.shape]}"',
            life.begin,
            life.end,
            (life.has.start, life.has.end),
        )


def _contents(
    lives: Sequence[Life],
) -> Iterator[tuple[float, float, _Slices]]:
    """From when to when a card has which slices."""
    times = sorted({time for life in lives for time in life[2:]})
    for start, end in itertools.pairwise(times):
        yield (
            start,
            end,
            frozenset(
                life.has for life in lives if life.begin <= start < life.end
            ),
        )


def stranded(offered: _Slices, taken: _Slices) -> Iterator[tuple[int, int]]:
    """The free memory that is in no slice that the card can still make."""
    usable = sorted([*taken, *card_slices.free(offered, taken)], key=_start)
    end = 0
    for each in usable:
        if each.start > end:
            yield end, each.start
        end = max(end, each.end)
    if end < card_slice.WHOLE_CARD:
        yield end, card_slice.WHOLE_CARD


def _start(each: card_slice.CardSlice) -> int:
    return each.start


def _legend() -> Iterator[str]:
    entries = [
        *((name, f'fill="{colour}"') for name, colour in COLOURS.items()),
        ('free', 'class="room"'),
        ('stranded: in no shape any more', 'class="stranded"'),
    ]
    for number, (name, style) in enumerate(entries):
        x, y = _LEFT + number % 7 * 130, 18 + number // 7 * 22
        yield f'<rect {style} x="{x}" y="{y}" width="14" height="14"/>\n'
        yield canvas.text(x + 20, y + 12, name, 'left')


def _axes(cards: int, height: int) -> Iterator[str]:
    for card in range(0, cards, 20):
        yield canvas.text(
            _LEFT - 8, _TOP + card * _ROW + 8, str(card), 'right'
        )
    for number in range(_LIVES + 1):
        yield canvas.text(_LEFT + number * _LIFE, height + 16, str(number))
    yield canvas.text(
        _LEFT + _LIVES * _LIFE / 2,
        height + 34,
        'time in mean lives of a unit; a row is a card, its memory downwards',
    )
