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

"""``/device_profiles/{uuid}/availability``: how many servers could start now.

A tenant learns a range, because an exact number would tell what others have.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import sys
from typing import Any

import webob

from nova_accel import exceptions
from nova_accel.api.handlers import device_profile as device_profile_handler
from nova_accel.api.handlers import project_limits
from nova_accel.api.http import caller
from nova_accel.api.http import policy
from nova_accel.api.http import request
from nova_accel.api.policies import device_profile as policies
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import draining
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.model.profiles import quota
from nova_accel.model.units import explanation
from nova_accel.model.units import known_units
from nova_accel.model.units import shortage_reason
from nova_accel.scheduler import known_stock

#: The ranges that tenants learn; the last one has no end.
_RANGES = ((0, 0), (1, 1), (2, 4), (5, 9), (10, None))


def show_availability(req: webob.Request) -> webob.Response:
    """How many servers with the profile could start now, by accelerators.

    Each server gets the first of several profiles that it can.

    :raises ServiceUnavailable: it is not known
    """
    context = request.authorize(req)
    profiles = _profiles(req)
    known = known_stock.current(known_stock.FRESH_S)
    if known is None:
        raise exceptions.ServiceUnavailable(
            'the database of accelerators gives no answer'
        )
    is_exact = policy.allows(context, policies.SHOW_EXACT_AVAILABILITY)
    groups = {
        profile['name']: link_division.off_fabric(
            device_profile.parse_groups(profile['groups'])
        )
        for profile in profiles
    }
    everything = [group for each in groups.values() for group in each]
    left = _left(context, everything)
    hosts: collections.Counter[str] = collections.Counter()
    obstacles: dict[str, str] = {}
    before: list[Sequence[device_profile.Group]] = []
    servers = 0
    for name, each in groups.items():
        most = sys.maxsize if is_exact else _RANGES[-1][0] - hosts.total()
        try:
            here = known.count_servers(each, most, before)
        except exceptions.NotFound as error:
            obstacles[name] = error.public
            continue
        before.append(each)
        hosts.update(here)
        servers += quota.take(left, each, sum(here.values()))
    classes = {name for group in everything for name in group.resources}
    least, most_told = (servers, servers) if is_exact else _range(servers)
    told: dict[str, Any] = {
        'device_profile_uuid': profiles[0]['uuid']
        if len(profiles) == 1
        else None,
        'device_profile_name': ','.join(groups),
        'min_servers': least,
        'max_servers': most_told,
        'is_limited_by_quota': servers < hosts.total(),
        'obstacle': None if before else _obstacle(obstacles),
        'drain_ends_at': _drain_ends_at(known, classes),
    }
    if is_exact:
        told['hosts'] = [
            {'hostname': hostname, 'servers': amount}
            for hostname, amount in sorted(hosts.items())
        ]
        told['not_free'] = _not_free(everything, known.inventories(classes))
    return webob.Response(json_body={'availability': told})


def _profiles(req: webob.Request) -> list[device_profile_db.DeviceProfileRow]:
    """The profiles of the path, by a uuid, or by names as in a flavor.

    :raises NotFound: there is none of a name
    """
    named = req.urlvars['uuid']
    if ',' not in named:
        return [device_profile_handler.find(req)]
    names = extra_specs.alternatives(named)
    for name in names:
        device_profile.check_name(name)
    found = {row['name']: row for row in device_profile_db.get_all(names)}
    missing = [name for name in names if name not in found]
    if missing:
        raise exceptions.NotFound.for_all(
            f'Device Profile not found with name={", ".join(missing)}'
        )
    return [found[name] for name in names]


def _obstacle(obstacles: Mapping[str, str]) -> str:
    if len(obstacles) == 1:
        [obstacle] = obstacles.values()
        return obstacle
    return '; '.join(f'{name}: {text}' for name, text in obstacles.items())


def _drain_ends_at(
    known: known_units.KnownUnits, resource_classes: Collection[str]
) -> str | None:
    """When the first drain is planned to end of a host with such units.

    The drains are read only if there are devices that someone has disabled.
    """
    drained = known.disabled_on(resource_classes)
    if not drained:
        return None
    ends = [
        drain['until']
        for drain in draining.get_all()
        if drain['hostname'] in drained
        and drain['until'] is not None
        and not drain['is_overdue']
    ]
    return min(ends).isoformat() if ends else None


def _not_free(
    groups: Sequence[device_profile.Group],
    inventories: Sequence[explanation.Inventory],
) -> list[dict[str, Any]]:
    """The units that suit and are not free, by the reason."""
    amounts = shortage_reason.not_free(groups, inventories)
    return [
        {'resource_class': resource_class, 'reason': reason, 'units': units}
        for (resource_class, reason), units in sorted(amounts.items())
    ]


def _range(servers: int) -> tuple[int, int | None]:
    """The range that a tenant learns of a number."""
    return next(each for each in reversed(_RANGES) if each[0] <= servers)


def _left(
    context: caller.Caller, groups: Sequence[device_profile.Group]
) -> dict[str, int]:
    """Resource class -> units that the caller's project may still have."""
    if context.project_id is None or not project_limits.are_on():
        return {}
    names = {name for group in groups for name in group.resources}
    return project_limits.left(context, context.project_id, names)
