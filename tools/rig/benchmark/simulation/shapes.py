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

"""How many requests for shapes of cards are placed.

Requests for whole cards, vGPUs and GPU instances come by chance (Poisson), and
stay as long as chance says. The same requests are served in several ways.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import heapq
import pathlib
import random
import statistics
from typing import Any
from typing import NamedTuple

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices
from rig.benchmark.simulation import clouds
from rig.benchmark.simulation import shape_bound
from rig.benchmark.simulation import shape_picture

CARDS = 200
REQUESTS = 6000
SEEDS = 5

#: How many of 100 requests are for a shape.
MIX = {
    'whole': 15,
    'vgpu:40C': 10,
    'vgpu:20C': 15,
    'vgpu:10C': 20,
    'mig:7g.80gb': 2,
    'mig:4g.40gb': 3,
    'mig:3g.40gb': 7,
    'mig:2g.20gb': 8,
    'mig:1g.20gb': 5,
    'mig:1g.10gb': 15,
}

#: Where GPU instances start that cannot start at each multiple of their size.
_STARTS = {
    'mig:4g.40gb': (0,),
    'mig:2g.20gb': (0, 2, 4),
    'mig:1g.10gb': range(7),
}

_Slices = frozenset[card_slice.CardSlice]
#: What a choice costs, the card, and the slice of it.
_Choice = tuple[tuple[int, ...], int, card_slice.CardSlice]
_Way = Callable[[str, int, _Slices, _Slices], _Choice | None]


class Scenario(NamedTuple):
    """``load`` is the memory that is asked for, as a share of all memory.

    ``is_mixed`` says that a card can have vGPUs of different sizes.
    """

    load: float
    is_mixed: bool


SCENARIOS = {
    '80% load': Scenario(0.8, True),
    '80% load, one size of vGPUs on a card': Scenario(0.8, False),
    '90% load': Scenario(0.9, True),
}


def figures(picture: str | None = None) -> dict[str, Any]:
    """The figures of all ways, the middle ones of several seeds.

    :param picture: the file that gets a picture of the policy's cards
    """
    if picture:
        run = Run(next(iter(SCENARIOS.values())), 'least harm')
        list(run.outcomes(clouds.chance(0), REQUESTS))
        pathlib.Path(picture).write_text(
            shape_picture.svg(run.offered, run.lives, run.now)
        )
    return {
        'cards': CARDS,
        'requests': REQUESTS,
        'seeds': SEEDS,
        'scenarios': {
            name: {way: _middle(scenario, way) for way in WAYS}
            for name, scenario in SCENARIOS.items()
        },
    }


def _middle(scenario: Scenario, way: str) -> dict[str, float]:
    found = [
        Run(scenario, way).figures(clouds.chance(seed), REQUESTS)
        for seed in range(SEEDS)
    ]
    return {
        name: statistics.median(each[name] for each in found)
        for name in found[0]
    }


class Outcome(NamedTuple):
    """A request, and whether an order of all units has room for it, too."""

    shape: str
    is_placed: bool
    is_possible: bool


class Run:
    """One way in one scenario.

    ``lives`` has each unit with its card, its begin and its end.
    """

    def __init__(
        self, scenario: Scenario, way: str, cards: int = CARDS
    ) -> None:
        self._is_mixed = scenario.is_mixed
        self._way = WAYS[way]
        eighths = sum(
            shape_bound.EIGHTHS[shape] * share for shape, share in MIX.items()
        )
        #: Requests in the mean life of a unit.
        self._rate = scenario.load * cards * 8 * sum(MIX.values()) / eighths
        offered = _kept(frozenset(slices(scenario.is_mixed)))
        self.offered: Sequence[_Slices] = (
            fixed_cards(offered, cards, self._rate)
            if way == _FIXED
            else [offered] * cards
        )
        self._taken: list[_Slices] = [frozenset()] * cards
        self._units: collections.Counter[str] = collections.Counter()
        self._ends: list[tuple[float, int, card_slice.CardSlice]] = []
        self.lives: list[shape_picture.Life] = []
        self.now = 0.0

    def figures(
        self, chance: random.Random, requests: int
    ) -> dict[str, float]:
        """Let the cloud settle, and count requests then."""
        outcomes = list(self.outcomes(chance, requests + requests // 2))
        counted = outcomes[requests // 2 :]
        placed = [each for each in counted if each.is_placed]
        possible = [each for each in counted if each.is_possible]
        return {
            'placed_of_possible_pct': _percent(len(placed), len(possible)),
            'whole_cards_of_possible_pct': _percent(
                sum(each.shape == 'whole' for each in placed),
                sum(each.shape == 'whole' for each in possible),
            ),
            'placed_pct': _percent(len(placed), len(counted)),
        }

    def outcomes(
        self, chance: random.Random, requests: int
    ) -> Iterator[Outcome]:
        """What becomes of so many requests."""
        for _request in range(requests):
            self.now += chance.expovariate(self._rate)
            self._end_lives()
            [shape] = chance.choices(list(MIX), list(MIX.values()))
            end = self.now + chance.expovariate(1)
            chosen = self._choose(shape)
            units = self._units + collections.Counter([shape])
            is_possible = shape_bound.cards(units, self._is_mixed) <= len(
                self._taken
            )
            if chosen is not None:
                self._place(*chosen[1:], end)
            yield Outcome(shape, chosen is not None, is_possible)

    def _choose(self, shape: str) -> _Choice | None:
        """The cheapest choice; of cards that are alike, the first one."""
        cards = {
            contents: card
            for card, contents in reversed(
                list(enumerate(zip(self.offered, self._taken, strict=True)))
            )
        }
        choices = (
            self._way(shape, card, *contents)
            for contents, card in cards.items()
        )
        return min(filter(None, choices), default=None)

    def _place(
        self, card: int, chosen: card_slice.CardSlice, end: float
    ) -> None:
        self._taken[card] = _kept(self._taken[card] | {chosen})
        self._units[chosen.shape] += 1
        heapq.heappush(self._ends, (end, card, chosen))
        self.lives.append(shape_picture.Life(card, chosen, self.now, end))

    def _end_lives(self) -> None:
        while self._ends and self._ends[0][0] <= self.now:
            _end, card, gone = heapq.heappop(self._ends)
            self._taken[card] = _kept(self._taken[card] - {gone})
            self._units[gone.shape] -= 1


@functools.cache
def _kept(slices: _Slices) -> _Slices:
    """One set for all that are equal, so that none have to be compared."""
    return slices


def _least_harm(
    shape: str, card: int, offered: _Slices, taken: _Slices
) -> _Choice | None:
    """As the product chooses."""
    best = card_slices.best(shape, offered, taken)
    if best is None:
        return None
    return card_slices.harm(best, offered, taken), card, best


def _first_fit(
    shape: str, card: int, offered: _Slices, taken: _Slices
) -> _Choice | None:
    able = [
        each
        for each in card_slices.free(offered, taken)
        if each.shape == shape
    ]
    return ((), card, min(able)) if able else None


def _most_free(
    shape: str, card: int, offered: _Slices, taken: _Slices
) -> _Choice | None:
    """As Nova chooses where it knows nothing of cards."""
    choice = _first_fit(shape, card, offered, taken)
    return choice and ((sum(each.size for each in taken),), *choice[1:])


_FIXED = 'fixed shapes, best ratio known in advance'
WAYS: dict[str, _Way] = {
    'least harm': _least_harm,
    'first fit': _first_fit,
    'most free first': _most_free,
    _FIXED: _first_fit,
}


def slices(is_mixed: bool) -> Iterator[card_slice.CardSlice]:
    """All that a card with 80 GB can make."""
    for shape, eighths in shape_bound.EIGHTHS.items():
        kind = shape.partition(':')[0]
        mode = shape if kind == 'vgpu' and not is_mixed else kind
        part = card_slice.WHOLE_CARD // 8
        for start in _STARTS.get(shape, range(0, 8, eighths)):
            yield card_slice.CardSlice(
                shape, mode, start * part, eighths * part
            )


def fixed_cards(offered: _Slices, cards: int, rate: float) -> list[_Slices]:
    """Cards that are divided for good, by the best ratio for the mix.

    Each shape's units are then a queue of their own, and Erlang's formula says
    how many requests it places. One card is divided after the other, and then
    anew, until no card can be divided better beside the others.
    """
    loads = {
        shape: rate * share / sum(MIX.values()) for shape, share in MIX.items()
    }
    units: collections.Counter[str] = collections.Counter()

    def gain(division: _Slices) -> float:
        more = collections.Counter(each.shape for each in division)
        return sum(
            _placed(loads[shape], units[shape] + number)
            - _placed(loads[shape], units[shape])
            for shape, number in more.items()
            if shape in loads
        )

    divisions = _divisions(offered)
    chosen = collections.deque([frozenset[card_slice.CardSlice]()] * cards)
    unchanged = 0
    while unchanged < cards:
        old = chosen.popleft()
        units.subtract(each.shape for each in old)
        best = max([old, *divisions], key=gain)
        units.update(each.shape for each in best)
        chosen.append(best)
        unchanged = unchanged + 1 if best == old else 0
    return [_kept(each) for each in chosen]


def _divisions(offered: _Slices) -> list[_Slices]:
    """All that a card can be at most, once for the same number of shapes."""
    found: dict[tuple[str, ...], _Slices] = {}
    seen: set[_Slices] = {frozenset()}
    new = list(seen)
    while new:
        taken = new.pop()
        free = card_slices.free(offered, taken)
        if not free:
            found[tuple(sorted(each.shape for each in taken))] = taken
        more = {taken | {each} for each in free} - seen
        seen |= more
        new += more
    return list(found.values())


@functools.cache
def _placed(load: float, units: int) -> float:
    """How many requests in a mean life units of one shape serve (Erlang B)."""
    refused = 1.0
    for number in range(1, units + 1):
        refused = load * refused / (number + load * refused)
    return load * (1 - refused)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 100.0
