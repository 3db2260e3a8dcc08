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

"""How many servers of FPGAs find a region that holds their bitstream.

The servers boot at a steady load. A server that is not served by a region with
its bitstream has one programmed.
"""

from collections.abc import Iterator
import dataclasses
import itertools
import random
from typing import Any

from nova_accel.model.fpga import bitstream_stock
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from rig.benchmark.simulation import clouds

BITSTREAMS = 20
REGIONS = 1000
REGIONS_OF_HOST = 4
LOAD = 0.7
BOOTS = 12000

#: How many boots pass until the demand changes, if it does.
STEADY_BOOTS = 3000

#: After so many boots an old one counts half in the known demand.
HALF_LIFE_BOOTS = 200

#: How many idle regions are programmed for each boot, at most.
RATE = 1


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A way to run the cloud.

    ``is_changing`` says that the demand changes. ``is_stocked`` says that idle
    regions are programmed towards the demand. ``is_cleaned`` says that each
    region is programmed once its server is gone, with what is short.
    """

    chooser: type[clouds.Chooser] = clouds.ByPolicy
    is_changing: bool = False
    is_stocked: bool = False
    is_cleaned: bool = False


SCENARIOS = {
    'steady': Scenario(),
    'steady, most free first': Scenario(clouds.MostFreeFirst),
    'steady, first candidate': Scenario(clouds.FirstCandidate),
    'changing': Scenario(is_changing=True),
    'changing, with stock': Scenario(is_changing=True, is_stocked=True),
    'changing, most free first': Scenario(
        clouds.MostFreeFirst, is_changing=True
    ),
    'cleaned after each guest': Scenario(is_cleaned=True),
}


def figures(seed: int = 0) -> dict[str, Any]:
    """The figures of all scenarios."""
    return {
        'bitstreams': BITSTREAMS,
        'regions': REGIONS,
        'load': LOAD,
        'boots': BOOTS,
        'scenarios': {
            name: Run(scenario, clouds.chance(seed)).figures(BOOTS)
            for name, scenario in SCENARIOS.items()
        },
    }


class Run:
    """One scenario."""

    def __init__(self, scenario: Scenario, chance: random.Random) -> None:
        self._scenario = scenario
        self._chance = chance
        self._cloud = clouds.Cloud(
            [
                [_region(host, number) for number in range(REGIONS_OF_HOST)]
                for host in range(REGIONS // REGIONS_OF_HOST)
            ]
        )
        self._chooser = scenario.chooser(self._cloud, chance)
        self._groups = {
            f'bitstream{number}': device_profile.Group(
                {'FPGA': 1},
                properties={'bitstream_id': f'bitstream{number}'},
            )
            for number in range(BITSTREAMS)
        }
        self._popular = list(self._groups)
        self._servers: list[clouds.Place] = []
        self._idle = _Idle(self._cloud)
        self._demand = _Demand()
        self._programmed_idle = 0

    def figures(self, boots: int) -> dict[str, Any]:
        """Fill the cloud, let it settle, and count boots then."""
        while len(self._servers) < LOAD * REGIONS:
            self._boot()
        for _boot in range(boots // 3):
            self._turn_over()
        self._programmed_idle = 0
        ready = matches = 0
        for number in range(boots):
            if self._scenario.is_changing and not number % STEADY_BOOTS:
                self._chance.shuffle(self._popular)
            is_match, is_ready = self._turn_over()
            matches += is_match
            ready += is_ready
        return {
            'needed_no_programming_pct': _percent(ready, boots),
            'of_those_possible_pct': _percent(ready, matches),
            'idle_regions_programmed': self._programmed_idle,
        }

    def _turn_over(self) -> tuple[bool, bool]:
        """Delete a server and boot one; whether it could match, and did."""
        self._delete()
        found = self._boot()
        if self._scenario.is_stocked:
            self._stock()
        return found

    def _boot(self) -> tuple[bool, bool]:
        [wanted] = self._chance.choices(
            self._popular,
            [1 / rank for rank in range(1, BITSTREAMS + 1)],
        )
        is_match = self._idle.amounts().get(wanted, 0) > 0
        if isinstance(self._chooser, clouds.ByPolicy):
            self._chooser.demand = bitstream_stock.missed(
                self._demand.known, self._idle.amounts()
            )
        place = self._chooser.choose(self._groups[wanted])
        assert place is not None
        [uuid] = place.units
        is_ready = self._cloud.held(place.host, uuid) == wanted
        self._idle.remove(place.host, uuid)
        self._cloud.take(place)
        self._cloud.program(place.host, uuid, wanted)
        self._servers.append(place)
        self._demand.note(wanted)
        return is_match, is_ready

    def _delete(self) -> None:
        index = self._chance.randrange(len(self._servers))
        self._servers[index], self._servers[-1] = (
            self._servers[-1],
            self._servers[index],
        )
        place = self._servers.pop()
        [uuid] = place.units
        self._cloud.give_back(place)
        if self._scenario.is_cleaned:
            self._cloud.program(place.host, uuid, None)
        self._idle.add(place.host, uuid)
        if self._scenario.is_cleaned:
            for replacement in itertools.islice(self._short(), 1):
                self._replace(None, replacement.new)

    def _stock(self) -> None:
        for replacement in itertools.islice(list(self._short()), RATE):
            self._replace(replacement.old, replacement.new)

    def _short(self) -> Iterator[bitstream_stock.Replacement]:
        return bitstream_stock.short(
            self._demand.known, self._idle.amounts(), self._idle.total()
        )

    def _replace(self, old: str | None, new: str) -> None:
        host, uuid = self._idle.any_with(old)
        self._idle.remove(host, uuid)
        self._cloud.program(host, uuid, new)
        self._idle.add(host, uuid)
        self._programmed_idle += 1


class _Idle:
    """The idle regions, by what they hold."""

    def __init__(self, cloud: clouds.Cloud) -> None:
        self._cloud = cloud
        self._regions: dict[str | None, dict[tuple[int, str], None]] = {}
        for host in range(len(cloud)):
            for each in cloud.pool(host):
                self.add(host, each.deployable_uuid)

    def add(self, host: int, uuid: str) -> None:
        self._regions.setdefault(self._cloud.held(host, uuid), {})[
            host, uuid
        ] = None

    def remove(self, host: int, uuid: str) -> None:
        """Before it is programmed."""
        del self._regions[self._cloud.held(host, uuid)][host, uuid]

    def any_with(self, bitstream: str | None) -> tuple[int, str]:
        return next(iter(self._regions[bitstream]))

    def amounts(self) -> dict[str, int]:
        return {
            name: len(regions)
            for name, regions in self._regions.items()
            if name is not None
        }

    def total(self) -> int:
        return sum(len(regions) for regions in self._regions.values())


class _Demand:
    """The demand for each bitstream; old boots count less."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def note(self, wanted: str) -> None:
        for name in self.known:
            self.known[name] *= 0.5 ** (1 / HALF_LIFE_BOOTS)
        self.known[wanted] = self.known.get(wanted, 0.0) + 1


def _region(host: int, number: int) -> free_units.FreeUnits:
    return free_units.FreeUnits(
        f'{host}-{number}',
        f'rp{host}',
        'FPGA',
        frozenset(),
        1,
        1,
        region=f'region{number}',
    )


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 100.0
