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

"""Which idle regions should hold another bitstream, by the demand.

The idle regions are shared among the bitstreams in proportion to the demand
for each, by the method of D'Hondt. The demand for a bitstream is divided by
the number of regions that it would have with the next one. That region goes to
the bitstream with the largest quotient.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

#: How many times more the new bitstream has to be wanted than the old one.
#: Each programming takes time and wears the flash of some cards, and the
#: demand is known from few boots only.
MARGIN = 2.0


class Replacement(NamedTuple):
    """An idle region that holds ``old`` should hold ``new``.

    ``old`` is None for an empty region.
    """

    old: str | None
    new: str


def short(
    demand: Mapping[str, float],
    idle: Mapping[str, int],
    idle_total: int,
    margin: float = MARGIN,
) -> Iterator[Replacement]:
    """The replacements that are worth it, the most urgent first.

    :param demand: bitstream -> how much it is wanted, in any unit
    :param idle: bitstream -> how many idle regions hold it
    :param idle_total: how many regions are idle; more than in ``idle`` if
        some are empty
    """
    if not demand:
        return
    held = dict(idle)
    empty = idle_total - sum(idle.values())
    while True:
        new = max(
            demand, key=lambda name: demand[name] / (held.get(name, 0) + 1)
        )
        gained = demand[new] / (held.get(new, 0) + 1)
        old = None
        lost = 0.0
        if empty > 0:
            empty -= 1
        else:
            present = [name for name, amount in held.items() if amount]
            if not present:
                return
            old = min(
                present, key=lambda name: demand.get(name, 0.0) / held[name]
            )
            lost = demand.get(old, 0.0) / held[old]
            held[old] -= 1
        if gained <= lost * margin:
            return
        held[new] = held.get(new, 0) + 1
        yield Replacement(old, new)


def missed(
    demand: Mapping[str, float], idle: Mapping[str, int]
) -> dict[str, float]:
    """Bitstream -> the demand for each idle region that holds it.

    A region for which it is low is over-stocked. It should be programmed with
    another bitstream before others are.
    """
    return {
        name: demand.get(name, 0.0) / amount
        for name, amount in idle.items()
        if amount > 0
    }
