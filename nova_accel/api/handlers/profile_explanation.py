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

"""``/device_profiles/{uuid}/explain``."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
from typing import Any

import webob

from nova_accel.api.handlers import device_profile as device_profile_handler
from nova_accel.api.http import paging
from nova_accel.api.http import request
from nova_accel.db import explanation as explanation_db
from nova_accel.model import paging as paging_model
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation

#: How many hosts a page has, unless the client asks for another number.
_HOSTS = 100

#: A page ends at the host with which it has as many bytes.
_MAX_BYTES = 768 * 1024


@dataclasses.dataclass(frozen=True)
class _Query:
    """Which hosts a client asks for."""

    limit: int
    after: str | None
    hostname: str | None


def explain_device_profile(req: webob.Request) -> webob.Response:
    """Which providers could serve its groups, and why others cannot."""
    request.authorize(req)
    profile = device_profile_handler.find(req)
    asked = _read_query(req)
    groups = device_profile.parse_groups(profile['groups'])
    hostnames, units = explanation_db.get_page(
        {name for group in groups for name in group.resources},
        asked.limit,
        asked.after,
        asked.hostname,
    )
    shown, last = _to_json(
        profile['groups'],
        groups,
        hostnames,
        explanation.inventories(units),
    )
    body: dict[str, Any] = {
        'explain': {
            'device_profile_uuid': profile['uuid'],
            'device_profile_name': profile['name'],
            'groups': shown,
        }
    }
    if last is not None and (
        last != hostnames[-1] or len(hostnames) == asked.limit
    ):
        body['explain_links'] = paging.next_links(
            req,
            f'device_profiles/{profile["uuid"]}/explain',
            asked.limit,
            last,
        )
    return webob.Response(json_body=body)


def _read_query(req: webob.Request) -> _Query:
    """:raises InvalidRequest: names what is wrong."""
    arguments = request.query(req)
    return _Query(
        paging_model.parse_limit(arguments.get('limit', str(_HOSTS))),
        arguments.get('marker'),
        arguments.get('hostname'),
    )


def _to_json(
    raw: Sequence[Mapping[str, str]],
    groups: Sequence[device_profile.Group],
    hostnames: Iterable[str],
    inventories: Iterable[explanation.Inventory],
) -> tuple[list[dict[str, Any]], str | None]:
    """The groups with the providers of the hosts that the page has room for.

    :param raw: the groups as the profile has them
    :returns: the groups, and the last host
    """
    shown: list[dict[str, Any]] = [
        {
            'device_profile_group_id': number,
            'group': group,
            'hostnames': [],
            'resource_providers': [],
        }
        for number, group in enumerate(raw)
    ]
    of_hosts: dict[str, list[explanation.Inventory]] = {}
    for inventory in inventories:
        of_hosts.setdefault(inventory.hostname, []).append(inventory)
    size, last = 0, None
    for hostname in hostnames:
        of_host = [
            [_provider(candidate) for candidate in candidates]
            for candidates in explanation.explain_all(
                groups, of_hosts.get(hostname, ())
            )
        ]
        size += len(json.dumps(of_host))
        if last is not None and size > _MAX_BYTES:
            break
        for group, providers in zip(shown, of_host, strict=True):
            group['resource_providers'].extend(providers)
            if not all(provider['reasons'] for provider in providers):
                group['hostnames'].append(hostname)
        last = hostname
    return shown, last


def _provider(candidate: explanation.Candidate) -> dict[str, Any]:
    return {
        'uuid': candidate.inventory.rp_uuid,
        'hostname': candidate.inventory.hostname,
        'resource_class': candidate.inventory.resource_class,
        'device_uuids': candidate.inventory.device_uuids,
        'device_addresses': candidate.inventory.device_addresses,
        'total': candidate.inventory.total,
        'free': candidate.inventory.free,
        'reasons': candidate.reasons,
    }
