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

"""The free units of one deployable, as the choice between them sees them."""

from collections.abc import Iterable
import dataclasses
from typing import NamedTuple

from nova_accel.model.cards import card_slice

_NUMA_NODE = 'numa'


class HeldUnits(NamedTuple):
    """The units of a deployable that a server has, with their slices."""

    amount: int
    slices: tuple[card_slice.CardSlice, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FreeUnits:
    """The free units of one deployable.

    A pool has one of these for each deployable of its provider, also for
    those of which nothing is free. Otherwise no one could tell which sets are
    wholly free.

    ``free`` is how many units a guest can have now, ``total`` how many there
    are. ``traits`` are the deployable's own. ``sets`` are the sets of devices
    that it is in, the largest first, for example its NUMA node and its device.
    ``node`` is its NUMA node where the sets are those of links.
    ``region`` is the name of its FPGA region, None without one.
    ``bitstream_id`` is what the region holds, None if it holds nothing that is
    known. ``slices`` are those of the units of a card of many shapes, also of
    units that are taken, and ``taken`` those of the latter.
    """

    deployable_uuid: str
    rp_uuid: str
    resource_class: str
    traits: frozenset[str]
    free: int
    total: int
    sets: tuple[str, ...] = ()
    region: str | None = None
    bitstream_id: str | None = None
    is_degraded: bool = False
    node: str | None = None
    slices: tuple[card_slice.CardSlice, ...] = ()
    taken: tuple[card_slice.CardSlice, ...] = ()

    @property
    def numa_node(self) -> str | None:
        """The set of its NUMA node.

        If no node is known, that is one more: a machine without NUMA tells
        none for any device.
        """
        if self.node is not None:
            return self.node
        found = self.sets[:1]
        return found[0] if found and found[0].startswith(_NUMA_NODE) else None

    def freed(self, held: HeldUnits) -> 'FreeUnits':
        """The units when a server has given back what it has of them."""
        return dataclasses.replace(
            self,
            # It may have been read before the server got them.
            free=min(self.total, self.free + held.amount),
            taken=tuple(
                each for each in self.taken if each not in held.slices
            ),
        )


def node_of(numa_node: int | None) -> str | None:
    """The name of a NUMA node, None if no node is known."""
    return None if numa_node is None else f'{_NUMA_NODE}{numa_node}'


def nodes_of(numa_nodes: Iterable[int]) -> frozenset[str]:
    """The names of NUMA nodes."""
    return frozenset(f'{_NUMA_NODE}{number}' for number in numa_nodes)


def number_of(node: str) -> int:
    """The number in the name of a NUMA node."""
    return int(node.removeprefix(_NUMA_NODE))


def sets_of(numa_node: int | None, *others: str) -> tuple[str, ...]:
    """The sets of a deployable, the largest first.

    :param others: the sets within the NUMA node, the largest first
    """
    node = node_of(numa_node)
    return others if node is None else (node, *others)
