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

"""``/deployables``: the parts of devices that are handed out, and regions."""

from collections.abc import Mapping
import functools
import json
from typing import Any

import webob
import webob.exc

from nova_accel import exceptions
from nova_accel.api.compute import programming
from nova_accel.api.http import microversion
from nova_accel.api.http import paging
from nova_accel.api.http import policy
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.api.policies import deployable as policies
from nova_accel.db import deployable as deployable_db
from nova_accel.model import attribute

#: The fields that say where a deployable is.
_PLACE = ('hostname', 'device_uuid', 'device_id', 'rp_uuid', 'driver')

_CYBORGS_FILTER = ('filters.field', 'filters.value')


def list_deployables(req: webob.Request) -> webob.Response:
    request.authorize(req)
    query = paging.query(req, deployable_db.SORT_KEYS)
    return query.answer(
        req,
        'deployables',
        'deployables',
        deployable_db.get_all(
            page=query.page, **_with_cyborgs_filter(query.filters)
        ),
        functools.partial(_to_json, req),
    )


def _with_cyborgs_filter(filters: Mapping[str, str]) -> dict[str, str]:
    """The filters; Cyborg has a filter's name and its value in two arguments.

    :raises InvalidRequest: one is missing, or there is no such name
    """
    found = dict(filters)
    field, value = (found.pop(name, None) for name in _CYBORGS_FILTER)
    if field is None and value is None:
        return found
    if field is None or value is None:
        raise exceptions.InvalidRequest(
            f'Give both {" and ".join(_CYBORGS_FILTER)}, or neither'
        )
    if field != 'name':
        raise exceptions.InvalidRequest(
            'Invalid input for field/attribute field. Value: '
            f"'{field[:255]}'. Value should be one of: name"
        )
    return {**found, 'name': value}


def get_deployable(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return webob.Response(
        json_body=_to_json(
            req, deployable_db.get(request.path_uuid(req, 'uuid'))
        )
    )


def program_deployable(req: webob.Request) -> webob.Response:
    """Program a region as Cyborg does; answers when it is programmed."""
    context = request.authorize(req)
    uuid = request.path_uuid(req, 'uuid')
    [operation] = request.json_body(req)
    [value] = operation['value']
    found = programming.program(context, uuid, _uuid(value['image_uuid']))
    if policy.allows(context, policies.SHOW):
        return webob.Response(json_body=_to_json(req, found))
    # The owner of the server must not learn where the deployable is.
    return webob.Response(
        json_body=_to_json(
            req, {**found, **dict.fromkeys(_PLACE), 'noted': {}}
        )
    )


def program_deployable_again_named(req: webob.Request) -> webob.Response:
    """The same: openstacksdk has the uuid in its path twice."""
    if request.path_uuid(req, 'same_uuid') != request.path_uuid(req, 'uuid'):
        raise webob.exc.HTTPNotFound()
    return program_deployable(req)


def _uuid(value: str) -> str:
    try:
        return request.uuids('image_uuid', [value])[0]
    except exceptions.InvalidRequest as error:
        # This is all that Cyborg says.
        raise exceptions.InvalidRequest(
            f'Expected a uuid but received {value[:255]}.'
        ) from error


def _to_json(
    req: webob.Request, deployable: Mapping[str, Any]
) -> dict[str, Any]:
    """:param deployable: a row, with None for what is hidden"""
    shown = {
        'uuid': deployable['uuid'],
        'parent_id': None,
        'root_id': None,
        'name': deployable['name'],
        'num_accelerators': deployable['units'],
        'device_id': deployable['device_id'],
        # Cyborg has JSON in a string here.
        'attributes_list': json.dumps(
            [
                {key: value}
                for known in (
                    attribute.of_placement(
                        deployable['traits'], deployable['resource_class']
                    ),
                    deployable['noted'],
                )
                for key, value in known.items()
            ]
        ),
        'rp_uuid': deployable['rp_uuid'],
        'driver_name': deployable['driver'],
        'bitstream_id': deployable['bitstream_id'],
        'links': representation.link(req, 'deployables', deployable['uuid'])
        + representation.bookmark(req, 'deployables', deployable['uuid']),
        **representation.times(deployable),
    }
    if microversion.is_at_least(req, '2.4'):
        shown['hostname'] = deployable['hostname']
        shown['device_uuid'] = deployable['device_uuid']
        shown['region'] = deployable['region']
        shown['num_accelerators_in_use'] = deployable['units_in_use']
    return shown
