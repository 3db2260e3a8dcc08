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

"""The sets of joined devices of one host, across its pools.

Where devices are pooled by their link sets, a pool is the smallest of them. So
only the whole host shows which larger sets are free, and which a choice would
break.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import NamedTuple

from nova_accel.model import link_places
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import unit_choice
from nova_accel.model.units import unit_sets

#: How many choices a host remembers the harm of.
_REMEMBERED = 256

#: (Provider uuid, resource class) -> how many units are taken.
Amounts = Mapping[tuple[str, str], int]


class Harm(NamedTuple):
    """The harm that a choice does to the sets of its host.

    ``span`` and ``broken`` are as in :class:`unit_choice.Cost`. ``left`` is
    how many units of the same classes stay free on the host.
    """

    span: int = 0
    broken: int = 0
    left: int = 0


class SetPlace(NamedTuple):
    """A set of joined devices, and the pools that are in it."""

    name: str
    rp_uuids: frozenset[str]


class HostLinks:
    """The link sets of a host, with the units that are free. It never changes.

    :param pools: all providers of the host that have joined devices, with
        their deployables
    """

    def __init__(
        self, pools: Mapping[str, Sequence[free_units.FreeUnits]]
    ) -> None:
        self.pools = pools
        self._harms: dict[frozenset[tuple[tuple[str, str], int]], Harm] = {}

    @functools.cached_property
    def _places(self) -> Mapping[link_places.Join, Sequence[SetPlace]]:
        """Join -> the places that can give it, the smallest ones first."""
        pools: dict[str, set[str]] = {}
        sizes: collections.Counter[str] = collections.Counter()
        for rp_uuid, units in self.pools.items():
            for each in units:
                for name in each.sets:
                    pools.setdefault(name, set()).add(rp_uuid)
                    sizes[name] += 1
        found: dict[link_places.Join, list[SetPlace]] = {}
        for name in sorted(pools, key=lambda name: sizes[name]):
            place = SetPlace(name, frozenset(pools[name]))
            for join in link_places.joins(name):
                found.setdefault(join, []).append(place)
        return found

    def places(self, link: str, size: int) -> Sequence[SetPlace]:
        """The sets that can join so many devices, free or not."""
        return self._places.get((link, size), ())

    @functools.cached_property
    def _trees(self) -> Mapping[str, unit_sets.UnitSet]:
        """Resource class -> the tree of all sets of its devices."""
        of_classes: dict[str, list[free_units.FreeUnits]] = {}
        for units in self.pools.values():
            for each in units:
                of_classes.setdefault(each.resource_class, []).append(each)
        return {
            resource_class: unit_sets.tree(members, {})
            for resource_class, members in of_classes.items()
        }

    def harm(self, amounts: Amounts) -> Harm:
        """The harm of taking so many units of each pool.

        A pool gives those of its units that a binding would choose. Pools
        without joined devices do not count.
        """
        key = frozenset(amounts.items())
        found = self._harms.get(key)
        if found is None:
            found = self._harm(amounts)
            if len(self._harms) >= _REMEMBERED:
                self._harms.clear()
            self._harms[key] = found
        return found

    def _harm(self, amounts: Amounts) -> Harm:
        taken: dict[str, dict[str, int]] = {}
        for (rp_uuid, resource_class), amount in amounts.items():
            choice = unit_choice.choose(
                device_profile.Group({resource_class: amount}),
                self.pools.get(rp_uuid, ()),
            )
            if choice is not None:
                taken.setdefault(resource_class, {}).update(choice.units)
        return _together(
            [
                _of_class(self._trees[resource_class], units)
                for resource_class, units in taken.items()
            ]
        )


def _of_class(root: unit_sets.UnitSet, taken: Mapping[str, int]) -> Harm:
    done = unit_sets.damage(root, taken)
    return Harm(done.span, done.broken, root.free - sum(taken.values()))


def _together(harms: Iterable[Harm]) -> Harm:
    found = list(harms)
    return Harm(
        max((harm.span for harm in found), default=0),
        max((harm.broken for harm in found), default=0),
        sum(harm.left for harm in found),
    )
