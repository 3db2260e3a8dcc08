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

"""Sets of devices that are joined, and the one tree that they form.

Devices are joined by NVLink, by a PCIe switch, by a root complex or by a NUMA
node. In Placement each provider has one parent. So all sets of a host form one
tree, and a set that crosses another one is not offered.
"""

from collections.abc import Mapping
import dataclasses
import enum
import functools

from nova_accel.model import bounds
from nova_accel.model import naming

#: The most devices that a request may want joined.
MAX_SIZE = 64

#: The most sets that a device is in, and the longest name of one.
MAX_DEPTH = bounds.MAX_LINK_SETS
MAX_NAME = 64

#: NVIDIA's boards number their modules from 1 to 8.
MAX_MODULE_ID = 255


class Kind(enum.StrEnum):
    """How devices are joined. A set of an earlier kind is taken first."""

    NVLINK = 'nvlink'
    PCIE = 'pcie'
    #: A PCIe root complex. A profile cannot ask for it.
    ROOT = 'root'
    NUMA = 'numa'


@dataclasses.dataclass(frozen=True)
class LinkSet:
    """Devices that are joined.

    ``members`` are names of devices. With ``is_exact`` only the whole set is
    joined, as in a partition of NVSwitches. Otherwise any two or more of its
    members are. A set that is not ``is_able`` keeps its place in the tree, so
    that no provider changes, but no one is promised it. ``down`` are pairs of
    members that are not joined now. A set with such a pair keeps its place,
    and its parts are promised instead. ``name`` says what
    joins them, and stays the same while members come and go; without one, the
    members make the name.
    """

    kind: Kind
    members: frozenset[str]
    is_exact: bool = False
    is_able: bool = True
    name: str = ''
    down: frozenset[frozenset[str]] = frozenset()

    @property
    def sizes(self) -> range:
        """The numbers of joined devices that it can give."""
        if self.kind is Kind.ROOT or not self.is_able or self.down:
            return range(0)
        size = len(self.members)
        return range(size if self.is_exact else 2, min(size, MAX_SIZE) + 1)


@dataclasses.dataclass(frozen=True)
class SetNode:
    """One place of the tree, with the sets that are the same place.

    ``members`` may be more than those of its sets: devices without NVLink are
    in the node of an NVLink set if all the switches above them are.
    """

    name: str
    members: frozenset[str]
    sets: tuple[LinkSet, ...]

    @property
    def traits(self) -> frozenset[str]:
        """The traits of the node's own provider."""
        return frozenset(
            naming.link_trait(each.kind, size)
            for each in self.sets
            for size in each.sizes
        )


@dataclasses.dataclass(frozen=True)
class SetTree:
    """The sets of one host, each within its parent.

    ``nodes`` have the larger ones first. ``partitioned`` are the devices that
    work only in an active partition.
    """

    nodes: tuple[SetNode, ...] = ()
    partitioned: frozenset[str] = frozenset()

    def path(self, device: str) -> tuple[SetNode, ...]:
        """The nodes that a device is in, the largest first."""
        return self._paths.get(device, ())

    @functools.cached_property
    def _paths(self) -> Mapping[str, tuple[SetNode, ...]]:
        found: dict[str, tuple[SetNode, ...]] = {}
        for node in self.nodes:
            for member in node.members:
                found[member] = (*found.get(member, ()), node)
        return found

    def pool_traits(self, devices: frozenset[str]) -> frozenset[str]:
        """The traits of a pool of devices that are in the same nodes.

        An exact set counts only if the pool is all of it, as it has no other
        size.
        """
        if not devices:
            return frozenset()
        found = {
            naming.link_trait(each.kind, size)
            for node in self.path(min(devices))
            for each in node.sets
            if each.members >= devices
            for size in each.sizes
            if size <= len(devices)
        }
        if devices & self.partitioned:
            found.add(naming.FABRIC_TRAIT)
        return frozenset(found)
