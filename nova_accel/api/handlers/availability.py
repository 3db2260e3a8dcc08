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
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import quota
from nova_accel.model.units import known_units
from nova_accel.model.units import shortage_reason
from nova_accel.scheduler import known_stock

#: The ranges that tenants learn; the last one has no end.
_RANGES = ((0, 0), (1, 1), (2, 4), (5, 9), (10, None))


def show_availability(req: webob.Request) -> webob.Response:
    """How many servers with the profile could start now, by accelerators.

    :raises ServiceUnavailable: it is not known
    """
    context = request.authorize(req)
    profile = device_profile_handler.find(req)
    groups = link_division.off_fabric(
        device_profile.parse_groups(profile['groups'])
    )
    known = known_stock.current(known_stock.FRESH_S)
    if known is None:
        raise exceptions.ServiceUnavailable(
            'the database of accelerators gives no answer'
        )
    is_exact = policy.allows(context, policies.SHOW_EXACT_AVAILABILITY)
    hosts, obstacle = {}, None
    try:
        hosts = known.count_servers(
            groups, sys.maxsize if is_exact else _RANGES[-1][0]
        )
    except exceptions.NotFound as error:
        obstacle = error.public
    found = sum(hosts.values())
    allowed = _allowed(context, groups)
    servers = found if allowed is None else min(found, allowed)
    least, most = (servers, servers) if is_exact else _range(servers)
    told: dict[str, Any] = {
        'device_profile_uuid': profile['uuid'],
        'device_profile_name': profile['name'],
        'min_servers': least,
        'max_servers': most,
        'is_limited_by_quota': servers < found,
        'obstacle': obstacle,
    }
    if is_exact:
        told['hosts'] = [
            {'hostname': hostname, 'servers': amount}
            for hostname, amount in sorted(hosts.items())
        ]
        told['not_free'] = _not_free(known, groups)
    return webob.Response(json_body={'availability': told})


def _not_free(
    known: known_units.KnownUnits, groups: Sequence[device_profile.Group]
) -> list[dict[str, Any]]:
    """The units that suit and are not free, by the reason."""
    amounts = shortage_reason.not_free(
        groups,
        known.inventories(
            {name for group in groups for name in group.resources}
        ),
    )
    return [
        {'resource_class': resource_class, 'reason': reason, 'units': units}
        for (resource_class, reason), units in sorted(amounts.items())
    ]


def _range(servers: int) -> tuple[int, int | None]:
    """The range that a tenant learns of a number."""
    return next(each for each in reversed(_RANGES) if each[0] <= servers)


def _allowed(
    context: caller.Caller, groups: Sequence[device_profile.Group]
) -> int | None:
    """The servers that the quota of the caller's project leaves room for.

    :returns: None if there is no limit
    """
    if context.project_id is None or not project_limits.are_on():
        return None
    names = {name for group in groups for name in group.resources}
    return quota.servers(
        project_limits.left(context, context.project_id, names), groups
    )
