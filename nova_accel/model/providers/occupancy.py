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

"""How many units of each resource provider new servers can get.

A unit that an instance holds counts where Placement has allocated it, even if
its device has changed since. It is reserved there if Placement has lost the
allocation. Any other unit counts where it would be handed out, and is reserved
while it cannot be. So Placement's own computation, total - reserved - used,
gives the number of units that are free. It is negative only while Placement
has promised another server a unit whose allocation is lost.

Units of different shapes of a card take shares of the card, which Placement
counts, too. So it never promises more than the card has.
"""

import collections
from collections.abc import Mapping
from collections.abc import Set

from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.providers import provider_layout

Place = provider_layout.Place
Units = provider_layout.Units

#: Attach handle uuid -> the place from which Placement allocated it.
Held = Mapping[str, Place]

_Inventories = dict[str, dict[str, Units]]


def inventories(
    layout: provider_layout.Layout,
    unusable: Set[str],
    held: Held,
    uncounted: Mapping[Place, int],
) -> _Inventories:
    """The inventories of the layout's providers, and of others in use.

    Placement does not accept a total of zero, so such a resource class is left
    out.

    :param unusable: the uuids of the attach handles that no one may get
    :param uncounted: the units that instances hold and that Placement has not
        allocated to them
    """
    totals = {
        provider.uuid: collections.Counter(provider.totals)
        for provider in layout.providers
    }
    for uuid, place in held.items():
        home = layout.places.get(uuid)
        if home == place:
            continue
        if home is not None:
            totals[home.rp_uuid][home.resource_class] -= 1
        totals.setdefault(place.rp_uuid, collections.Counter())[
            place.resource_class
        ] += 1
    for classes in totals.values():
        if any(map(naming.is_shape_class, classes)):
            classes[naming.CARD_SHARE] = card_slice.WHOLE_CARD
    reserved = collections.Counter(
        layout.places[uuid]
        for uuid in unusable
        if uuid in layout.places and uuid not in held
    )
    reserved.update(uncounted)
    return {
        rp_uuid: {
            resource_class: Units(
                total, min(total, reserved[Place(rp_uuid, resource_class)])
            )
            for resource_class, total in classes.items()
            if total
        }
        for rp_uuid, classes in totals.items()
    }


def keep_reserved(
    found: _Inventories, held: Held, present: provider_layout.Inventories
) -> _Inventories:
    """Keep units reserved that are so already and that no one holds.

    For use while the reasons for the reservations are not known.

    :param held: the units that are known to be allocated; others may be
        reserved because they are not
    """
    used = collections.Counter(held.values())
    return {
        rp_uuid: {
            resource_class: Units(
                units.total,
                max(
                    units.reserved,
                    min(
                        present.get(rp_uuid, {})
                        .get(resource_class, units)
                        .reserved,
                        units.total - used[Place(rp_uuid, resource_class)],
                    ),
                ),
            )
            for resource_class, units in classes.items()
        }
        for rp_uuid, classes in found.items()
    }


def fit(found: _Inventories, allocated: Mapping[Place, int]) -> _Inventories:
    """Raise the totals to what is allocated.

    Placement refuses a reshape if any allocation does not fit, even one that
    it does not change.

    :param allocated: the allocations from our providers alone
    """
    result = {rp_uuid: dict(classes) for rp_uuid, classes in found.items()}
    for place, amount in allocated.items():
        classes = result.setdefault(place.rp_uuid, {})
        units = classes.get(place.resource_class, Units(0))
        total = max(units.total, amount)
        classes[place.resource_class] = Units(
            total, min(units.reserved, total - amount)
        )
    return result
