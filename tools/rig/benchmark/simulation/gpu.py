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

"""How many servers of several GPUs a cloud refuses, and how GPUs are linked.

Each host has two sets of four linked GPUs, and each of these has two pairs.
Servers of 1, 2, 4 and 8 GPUs come and go at a steady load.
"""

import collections
import random
from typing import Any

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from rig.benchmark.simulation import clouds

HOSTS = 250
GPUS_OF_HOST = 8
LOADS = (0.7, 0.9)
BOOTS = 20000

#: How many GPUs servers have, and how many of 100 servers have as many.
SIZES = {1: 50, 2: 20, 4: 20, 8: 10}

#: Where the name of a link set of so many GPUs is among the sets of a GPU.
_DEPTHS = {4: 0, 2: 1}

WAYS: dict[str, type[clouds.Chooser]] = {
    'by policy': clouds.ByPolicy,
    'most free first': clouds.MostFreeFirst,
}


def figures(seed: int = 0) -> dict[str, Any]:
    """The figures of all ways at all loads."""
    return {
        'gpus': HOSTS * GPUS_OF_HOST,
        'boots': BOOTS,
        'loads': {
            f'{load:.0%}': {
                name: Run(way, load, clouds.chance(seed)).figures(BOOTS)
                for name, way in WAYS.items()
            }
            for load in LOADS
        },
    }


class Run:
    """One way at one load."""

    def __init__(
        self, way: type[clouds.Chooser], load: float, chance: random.Random
    ) -> None:
        self._chance = chance
        self._most = int(load * HOSTS * GPUS_OF_HOST)
        self._cloud = clouds.Cloud(
            [
                [_gpu(host, number) for number in range(GPUS_OF_HOST)]
                for host in range(HOSTS)
            ]
        )
        self._chooser = way(self._cloud, chance)
        self._groups = {
            size: device_profile.Group({'PGPU': size}) for size in SIZES
        }
        self._servers: list[tuple[int, clouds.Place]] = []
        self._used = 0

    def figures(self, boots: int) -> dict[str, Any]:
        """Let the cloud settle, and count boots then."""
        for _boot in range(boots // 2):
            self._boot(self._size())
        asked: collections.Counter[int] = collections.Counter()
        refused: collections.Counter[int] = collections.Counter()
        linked: collections.Counter[bool] = collections.Counter()
        quads_broken = 0
        for _boot in range(boots):
            size = self._size()
            asked[size] += 1
            self._make_room(size)
            place = self._chooser.choose(self._groups[size])
            if place is None:
                refused[size] += 1
                continue
            if size in (2, 4):
                linked[len(self._sets_of(place, size)) == 1] += 1
            if size <= 2:
                quads_broken += self._breaks_quad(place) and self._has_pair()
            self._take(size, place)
        return {
            'refused_pct': {
                size: _percent(refused[size], asked[size]) for size in SIZES
            },
            'sets_on_one_link_set_pct': _percent(linked[True], linked.total()),
            'quads_broken_beside_pairs': quads_broken,
        }

    def _size(self) -> int:
        [size] = self._chance.choices(list(SIZES), list(SIZES.values()))
        return size

    def _make_room(self, size: int) -> None:
        """Delete servers until the load allows one more."""
        while self._used + size > self._most:
            index = self._chance.randrange(len(self._servers))
            self._servers[index], self._servers[-1] = (
                self._servers[-1],
                self._servers[index],
            )
            gone, place = self._servers.pop()
            self._cloud.give_back(place)
            self._used -= gone

    def _boot(self, size: int) -> None:
        self._make_room(size)
        place = self._chooser.choose(self._groups[size])
        if place is not None:
            self._take(size, place)

    def _take(self, size: int, place: clouds.Place) -> None:
        self._cloud.take(place)
        self._servers.append((size, place))
        self._used += size

    def _sets_of(self, place: clouds.Place, size: int) -> set[str]:
        """The link sets of this size that the chosen GPUs are in."""
        return {
            each.sets[_DEPTHS[size]]
            for each in self._cloud.pool(place.host)
            if each.deployable_uuid in place.units
        }

    def _breaks_quad(self, place: clouds.Place) -> bool:
        """Whether one of the chosen GPUs is in a quad that is wholly free."""
        whole = self._whole_sets(place.host, 4)
        return not whole.isdisjoint(self._sets_of(place, 4))

    def _has_pair(self) -> bool:
        """Whether a host has a free pair in a quad that is not free."""
        return any(
            len(self._whole_sets(host, 2)) > 2 * len(self._whole_sets(host, 4))
            for host in range(HOSTS)
        )

    def _whole_sets(self, host: int, size: int) -> set[str]:
        """The link sets of this size of which all GPUs are free."""
        free = collections.Counter(
            each.sets[_DEPTHS[size]]
            for each in self._cloud.pool(host)
            if each.free
        )
        return {name for name, amount in free.items() if amount == size}


def _gpu(host: int, number: int) -> free_units.FreeUnits:
    return free_units.FreeUnits(
        f'{host}-{number}',
        f'rp{host}',
        'PGPU',
        frozenset(),
        1,
        1,
        (f'quad{number // 4}', f'pair{number // 2}'),
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 100.0
