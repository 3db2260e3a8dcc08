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

"""``/servers/{uuid}/accelerators`` and ``/vendordata``: what works, or not.

Tenants and guests read the answers. So these name no host and no device.
"""

from collections.abc import Iterable
from concurrent import futures
from typing import Any

from oslo_log import log as logging
import webob

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.api.compute import profile_setting
from nova_accel.api.compute import replacing
from nova_accel.api.handlers import accelerator_request
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.db import server_arqs

LOG = logging.getLogger(__name__)

#: How long a guest that asks for its metadata waits for the database.
_PATIENCE_S = 0.05

#: They read for guests. While the database hangs, a few threads do, too.
_READERS = futures.ThreadPoolExecutor(4, 'vendordata')


def show_accelerators(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    found = server_arqs.get(
        request.path_uuid(req, 'uuid'), accelerator_request.reach(context)
    )
    return webob.Response(json_body=_to_json(found))


def replace_failed(req: webob.Request) -> webob.Response:
    """Replace failed devices of a server; answers when that is done."""
    context = request.authorize(req)
    body = request.json_body(req)
    replacing.replace(context, request.path_uuid(req, 'uuid'), body.get('arq'))
    return webob.Response(status=204, content_type=None)


def set_profile(req: webob.Request) -> webob.Response:
    """Answers when the server has what the device profile asks for."""
    context = request.authorize(req)
    reach = accelerator_request.reach(context)
    body = request.json_body(req)
    uuid = request.path_uuid(req, 'uuid')
    profile_setting.set_profile(context, uuid, body['device_profile'])
    try:
        found = server_arqs.get(uuid, reach)
    except exceptions.NotFound:
        found = []
    return webob.Response(json_body=_to_json(found))


def show_to_guest(req: webob.Request) -> webob.Response:
    """An empty object if there is nothing to tell, or not soon enough.

    Nova can be configured to let a guest have no metadata at all after an
    error.
    """
    request.authorize(req)
    body = request.json_body(req)
    [uuid] = request.uuids('instance-id', [body['instance-id']])
    reading = _READERS.submit(server_arqs.get, uuid, body['project-id'])
    try:
        told = _to_json(reading.result(_PATIENCE_S))
    except exceptions.NotFound:
        told = {}
    except Exception as fault:
        reading.cancel()
        LOG.warning(
            'The guest of server %s is not told of its accelerators: %s',
            uuid,
            reason.printable(str(fault) or type(fault).__name__),
        )
        told = {}
    return webob.Response(json_body=told)


def _to_json(rows: Iterable[server_arqs.ServerArqRow]) -> dict[str, Any]:
    return {
        'accelerators': [
            {
                'arq': row['uuid'],
                'device_profile_name': row['device_profile_name'],
                'device_profile_group_id': row['device_profile_group_id'],
                'resource_class': row['resource_class'],
                'state': row['state'],
                'is_leaving': row['is_leaving'],
                'health': row['health'].health,
                'reason': row['health'].reason,
                'since': representation.iso(row['since']),
                'drain': row['drain'] and _drain_to_json(row['drain']),
            }
            for row in rows
        ]
    }


def _drain_to_json(drain: server_arqs.DrainRow) -> dict[str, Any]:
    return {
        'from': representation.iso(drain['begin']),
        'until': representation.iso(drain['until']),
        'reason': drain['reason'],
    }
