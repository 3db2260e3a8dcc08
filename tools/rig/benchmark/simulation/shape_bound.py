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

"""How many cards a set of units needs at least, if all may be moved.

The bounds are exact for cards that are alike, with eight memory slices and
seven compute slices: a count below means that no order of the units fits, and
one at or above that some order does. ``test_shapes`` compares them with a
search.
"""

from collections.abc import Mapping

#: Shape of a vGPU or a GPU instance -> its eighths of the card's memory.
EIGHTHS = {
    'whole': 8,
    'vgpu:40C': 4,
    'vgpu:20C': 2,
    'vgpu:10C': 1,
    'mig:7g.80gb': 8,
    'mig:4g.40gb': 4,
    'mig:3g.40gb': 4,
    'mig:2g.20gb': 2,
    'mig:1g.20gb': 2,
    'mig:1g.10gb': 1,
}


def cards(units: Mapping[str, int], is_mixed: bool) -> int:
    """The least number of cards that can have these units at a time.

    :param units: shape -> how many of it
    :param is_mixed: whether a card can have vGPUs of different sizes
    """
    return units.get('whole', 0) + _vgpu_cards(units, is_mixed) + _mig(units)


def _vgpu_cards(units: Mapping[str, int], is_mixed: bool) -> int:
    """Each size divides the next one, so the largest first leave no gap."""
    eighths = [
        number * EIGHTHS[shape]
        for shape, number in units.items()
        if shape.startswith('vgpu:')
    ]
    if is_mixed:
        eighths = [sum(eighths)]
    return sum(-(-each // 8) for each in eighths)


def _mig(units: Mapping[str, int]) -> int:
    smaller = {
        shape: number
        for shape, number in units.items()
        if shape.startswith('mig:') and EIGHTHS[shape] < 8
    }
    number = sum(EIGHTHS[shape] * many for shape, many in smaller.items()) // 8
    while not _fits(number, smaller):
        number += 1
    return units.get('mig:7g.80gb', 0) + number


def _fits(number: int, units: Mapping[str, int]) -> bool:
    """Whether so many cards can have all GPU instances but those of a card.

    The left half of a card can have all that the right one can, which has four
    memory slices and three compute slices. So instances of 3g go to the right
    first. A half has two pairs of memory slices, the last of which is weak: it
    can have one instance, and none of 2g.
    """
    fours, threes, twos, wide, ones = (
        units.get(f'mig:{name}', 0)
        for name in ('4g.40gb', '3g.40gb', '2g.20gb', '1g.20gb', '1g.10gb')
    )
    right = max(0, number - threes)
    left = number - fours - max(0, threes - number)
    if fours > number or left < 0:
        return False
    wide_in_weak = min(right, wide)
    ones_in_weak = min(right - wide_in_weak, ones)
    return (
        twos + wide - wide_in_weak + -(-(ones - ones_in_weak) // 2)
        <= 2 * left + right
    )
