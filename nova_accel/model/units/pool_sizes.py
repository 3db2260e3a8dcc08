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

"""The size of the largest pool that could serve a group, if it were free.

nova-scheduler asks it for each request, and a cloud has tens of thousands of
providers. So the sizes are kept by kind of provider, of which there are few.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple

from nova_accel.model import link_places
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import unit_changes


class _PoolKind(NamedTuple):
    """``joins`` are those of all sets that the provider is in.

    ``share`` is what a unit takes of its card, 0 if it shares none.
    """

    resource_class: str
    traits: frozenset[str]
    joins: frozenset[link_places.Join]
    share: int

    def suits(self, group: device_profile.Group, joined: int) -> bool:
        return (
            group.resources.keys() == {self.resource_class}
            and group.required <= self.traits
            and group.forbidden.isdisjoint(self.traits)
            and (group.link is None or (group.link, joined) in self.joins)
        )


class _Size(NamedTuple):
    """The units of a provider, and the most of them on one NUMA node."""

    whole: int
    on_one_numa_node: int


class PoolSizes:
    """The sizes of all providers of the cloud."""

    def __init__(self) -> None:
        self._providers: dict[str, Mapping[_PoolKind, _Size]] = {}
        # How many providers of a kind have a size.
        self._sizes: dict[_PoolKind, collections.Counter[_Size]] = (
            collections.defaultdict(collections.Counter)
        )

    def put(
        self,
        rp_uuid: str,
        deployables: Iterable[unit_changes.ChangedDeployable],
    ) -> None:
        """Note the deployables of a provider; none if it is gone."""
        before = self._providers.pop(rp_uuid, {})
        after = _measured(deployables)
        if after:
            self._providers[rp_uuid] = after
        if before == after:
            return
        for kind, size in before.items():
            self._sizes[kind][size] -= 1
            # Sizes that no provider has any more must not count.
            self._sizes[kind] += collections.Counter()
            if not self._sizes[kind]:
                del self._sizes[kind]
        for kind, size in after.items():
            self._sizes[kind][size] += 1

    def largest(self, group: device_profile.Group, joined: int = 0) -> int:
        """The most units that one provider has, of those that suit the group.

        If the group wants one NUMA node, it is the most units on one. It is 0
        if none suits, also because only Placement knows a required trait.

        :param joined: how many devices have to be joined, if the group has a
            link
        """
        return max(
            (
                size.on_one_numa_node
                if group.is_on_one_numa_node
                else size.whole
                for kind, sizes in self._sizes.items()
                if kind.suits(group, joined)
                for size in sizes
            ),
            default=0,
        )

    def share(self, group: device_profile.Group) -> int:
        """The largest share of a card that a unit of the group may take."""
        return max(
            (kind.share for kind in self._sizes if kind.suits(group, 0)),
            default=0,
        )


def _measured(
    deployables: Iterable[unit_changes.ChangedDeployable],
) -> dict[_PoolKind, _Size]:
    """Kind -> size of one provider, which has one class as a rule."""
    of_classes: dict[str, list[unit_changes.ChangedDeployable]] = {}
    for each in deployables:
        of_classes.setdefault(each.resource_class, []).append(each)
    return {
        _PoolKind(
            resource_class,
            frozenset().union(*(each.traits for each in of_class)),
            link_places.of_places(of_class[0].link_sets),
            max(each.share for each in of_class),
        ): _size(of_class)
        for resource_class, of_class in of_classes.items()
    }


def _size(of_class: Iterable[unit_changes.ChangedDeployable]) -> _Size:
    on_numa_nodes: collections.Counter[int | None] = collections.Counter()
    for each in of_class:
        on_numa_nodes[each.numa_node] += each.total
    return _Size(on_numa_nodes.total(), max(on_numa_nodes.values(), default=0))
