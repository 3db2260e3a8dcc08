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

"""Why a server gets a device profile that is not the first of its flavor."""

from collections.abc import Sequence
import contextlib
import itertools

from nova_accel import exceptions
from nova_accel.db import device_profile as device_profile_db
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import matching
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.units import known_units
from nova_accel.model.units import link_shortage
from nova_accel.model.units import shortage_reason
from nova_accel.scheduler import known_stock


def get_obstacles(
    names: Sequence[str],
    allocations: Sequence[provider_allocation.ProviderAllocation],
) -> dict[str, str]:
    """Name of a device profile -> why no server could start with it now.

    A profile that could be served is left out. Nothing is known while the
    database gives no answer.

    :param names: the best one first; only those matter that are better than
        the first one that the allocations serve
    """
    stored = {}
    for row in device_profile_db.get_all(names):
        with contextlib.suppress(exceptions.InvalidDeviceProfile):
            stored[row['name']] = device_profile.parse_groups(row['groups'])
    better = list(
        itertools.takewhile(
            lambda name: (
                not matching.serves(stored.get(name, ()), allocations)
            ),
            names,
        )
    )
    known = known_stock.current(known_stock.FRESH_S) if better else None
    if known is None:
        return {}
    obstacles = {name: _obstacle(known, stored.get(name)) for name in better}
    return {name: text for name, text in obstacles.items() if text is not None}


def _obstacle(
    known: known_units.KnownUnits,
    groups: Sequence[device_profile.Group] | None,
) -> str | None:
    if groups is None:
        return 'there is none of that name, or it is malformed'
    groups = link_division.off_fabric(groups)
    try:
        parts = tuple(link_division.divided(groups, known.largest).parts)
    except exceptions.NotFound as error:
        return error.public
    for members in link_division.by_link(groups).values():
        shortage = link_shortage.find(tuple(members.values()), known.links())
        if shortage is not None:
            return shortage.cause
    inventories = known.inventories(
        {name for part in parts for name in part.resources}
    )
    cause = shortage_reason.first_cause(parts, inventories)
    if cause is None and not known.count_servers(groups, 1):
        return 'no host has all of it free together'
    return cause
