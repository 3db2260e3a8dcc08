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

"""A card whose units are of many shapes, and exclude each other."""

from collections.abc import Iterable
from collections.abc import Mapping

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices


class SharedCard:
    """The units of one card, while some of them are set aside.

    :param offered: resource class -> the slices of its units, of those that
        are taken, too
    :param taken: the slices of units that servers have
    """

    def __init__(
        self,
        offered: Mapping[str, Iterable[card_slice.CardSlice]],
        taken: Iterable[card_slice.CardSlice],
    ) -> None:
        self._offered = {
            resource_class: frozenset(slices)
            for resource_class, slices in offered.items()
        }
        self._all = frozenset[card_slice.CardSlice]().union(
            *self._offered.values()
        )
        self._taken = frozenset(taken)

    def free(self, resource_class: str) -> int:
        """How many units of a class are free, each of them by itself."""
        of_class = self._offered.get(resource_class, frozenset())
        return sum(
            each in of_class
            for each in card_slices.free(self._all, self._taken)
        )

    def take(
        self, resource_class: str, is_packed: bool = True
    ) -> card_slice.CardSlice | None:
        """Set the unit aside whose loss does the least harm.

        :returns: None if the card has no room
        """
        found = self._best(resource_class, self._taken, is_packed)
        if found is not None:
            self._taken |= {found}
        return found

    def harm(
        self, amounts: Mapping[str, int], is_packed: bool
    ) -> card_slices.Harm | None:
        """The cost of taking some units, of which nothing is set aside.

        :param amounts: resource class -> how many
        :returns: None if the card has no room
        """
        taken = self._taken
        costs = []
        for resource_class, amount in amounts.items():
            for _unit in range(amount):
                found = self._best(resource_class, taken, is_packed)
                if found is None:
                    return None
                costs.append(
                    card_slices.harm(found, self._all, taken, is_packed)
                )
                taken |= {found}
        return card_slices.Harm(
            costs[0].order,
            sum(each.lost for each in costs),
            costs[-1].left,
        )

    def _best(
        self,
        resource_class: str,
        taken: frozenset[card_slice.CardSlice],
        is_packed: bool,
    ) -> card_slice.CardSlice | None:
        # All units of a class are of one shape.
        for each in self._offered.get(resource_class, ()):
            return card_slices.best(each.shape, self._all, taken, is_packed)
        return None
