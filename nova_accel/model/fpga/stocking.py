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

"""Which idle FPGA regions are programmed with what servers will ask for.

A region that has a type is stocked only with bitstreams of profiles that
require this type. The control plane does not know what else an image says of
the regions that it is for.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
from typing import NamedTuple

from nova_accel.model import host_contract
from nova_accel.model import naming
from nova_accel.model.fpga import bitstream_stock
from nova_accel.model.profiles import device_profile

#: For so long after an order a region gets no other one, unless it holds what
#: was ordered.
PAUSE_S = 3600

#: By then a region that was ordered to hold a bitstream should hold it.
DUE_S = 900

#: A bitstream that did not get into so many regions is ordered no more, until
#: their orders are old.
_FAILURES = 2

#: How many replacements are looked at for each that may be ordered.
_LOOKED_AT = 8


class Ordered(NamedTuple):
    """The last order for a region, and its age."""

    bitstream_id: str
    age_s: float


class RegionKind(NamedTuple):
    """Regions of one kind serve the same groups."""

    resource_class: str
    traits: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class StockedRegion:
    """A region without a guest.

    ``name`` is unique within the device. ``deployable_uuid`` names one of its
    deployables, and ``traits`` are those that all of them have. ``ordered`` is
    None if there was no order within :data:`PAUSE_S`, or if it is fulfilled.
    ``contract`` is the host's.
    """

    device_uuid: str
    name: str
    hostname: str
    service_host: str
    deployable_uuid: str
    resource_class: str
    traits: frozenset[str]
    bitstream_id: str | None = None
    ordered: Ordered | None = None
    contract: int = host_contract.FIRST

    @property
    def kind(self) -> RegionKind:
        """The kind, whatever the region holds."""
        return RegionKind(
            self.resource_class,
            frozenset(
                trait
                for trait in self.traits
                if not naming.is_function_trait(trait)
            ),
        )

    @property
    def expected(self) -> str | None:
        """The bitstream that it holds, or is about to hold."""
        if self.ordered is not None and self.ordered.age_s < DUE_S:
            return self.ordered.bitstream_id
        return self.bitstream_id


class StockOrder(NamedTuple):
    """An order to program a region."""

    region: StockedRegion
    bitstream_id: str


class RegionStock:
    """The idle regions of a cloud.

    :param groups: of all device profiles
    :param demand: bitstream -> how much it is wanted
    """

    def __init__(
        self,
        regions: Iterable[StockedRegion],
        groups: Iterable[device_profile.Group],
        demand: Mapping[str, float],
    ) -> None:
        self._regions: dict[RegionKind, list[StockedRegion]] = {}
        for region in regions:
            self._regions.setdefault(region.kind, []).append(region)
        given_up = _regions_given_up(itertools.chain(*self._regions.values()))
        self._groups = [
            group
            for group in groups
            if group.properties.get('bitstream_id') in demand.keys() - given_up
        ]
        self._demand = demand

    def orders(self, most: int) -> list[StockOrder]:
        """The most urgent orders, at most one for each host."""
        found: list[StockOrder] = []
        hosts: set[str] = set()
        replacements = _in_turns(
            [(kind, iter(self._short(kind))) for kind in self._regions]
        )
        for kind, replacement in itertools.islice(
            replacements, most * _LOOKED_AT
        ):
            if len(found) == most:
                break
            for region in self._regions[kind]:
                if (
                    region.ordered is None
                    and region.bitstream_id == replacement.old
                    and region.hostname not in hosts
                ):
                    found.append(StockOrder(region, replacement.new))
                    hosts.add(region.hostname)
                    break
        return found

    def add_cleaned(self, region: StockedRegion) -> str | None:
        """Add a region that is about to be cleaned.

        :returns: the bitstream that it should hold then, None if none is short
        """
        of_kind = self._regions.setdefault(region.kind, [])
        first = next(self._short(region.kind, further=1), None)
        if first is None:
            return None
        of_kind.append(
            dataclasses.replace(region, bitstream_id=first.new, ordered=None)
        )
        return first.new

    def _short(
        self, kind: RegionKind, further: int = 0
    ) -> Iterator[bitstream_stock.Replacement]:
        """The bitstreams that regions of a kind should hold instead.

        :param further: how many empty regions there are beside those
        """
        held = collections.Counter(
            region.expected
            for region in self._regions[kind]
            if region.expected is not None
        )
        return bitstream_stock.short(
            self._demand_for(kind), held, len(self._regions[kind]) + further
        )

    def _demand_for(self, kind: RegionKind) -> dict[str, float]:
        fitting = {
            group.properties['bitstream_id']
            for group in self._groups
            if _fits(group, kind)
        }
        return {name: self._demand[name] for name in sorted(fitting)}


def _fits(group: device_profile.Group, kind: RegionKind) -> bool:
    """Whether a group can get regions of a kind, and says so."""
    return (
        kind.resource_class in group.resources
        and group.required <= kind.traits
        and group.forbidden.isdisjoint(kind.traits)
        and all(
            trait in group.required
            for trait in kind.traits
            if naming.is_region_trait(trait)
        )
    )


def _regions_given_up(regions: Iterable[StockedRegion]) -> set[str]:
    """The bitstreams that did not get where they were ordered."""
    failures = collections.Counter(
        region.ordered.bitstream_id
        for region in regions
        if region.ordered is not None and region.ordered.age_s >= DUE_S
    )
    return {name for name, count in failures.items() if count >= _FAILURES}


def _in_turns(
    queues: Sequence[tuple[RegionKind, Iterator[bitstream_stock.Replacement]]],
) -> Iterator[tuple[RegionKind, bitstream_stock.Replacement]]:
    """One of each queue, then the next of each, until all have ended."""
    while queues:
        left = []
        for kind, queue in queues:
            replacement = next(queue, None)
            if replacement is not None:
                left.append((kind, queue))
                yield kind, replacement
        queues = left
