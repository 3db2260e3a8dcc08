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

"""``/devices``: the devices that hosts report, and which are disabled."""

import functools
import json
from typing import Any

from oslo_log import log as logging
import webob

from nova_accel import reason
from nova_accel.api.compute import hurrying
from nova_accel.api.http import microversion
from nova_accel.api.http import paging
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.api.http import warning
from nova_accel.db import deployable as deployable_db
from nova_accel.db import device as device_db
from nova_accel.model.devices import hardware

LOG = logging.getLogger(__name__)

#: How many servers a warning names.
_MOST_TOLD = 8


def list_devices(req: webob.Request) -> webob.Response:
    request.authorize(req)
    query = paging.query(req, device_db.SORT_KEYS)
    devices = device_db.get_all(
        type_=query.filters.get('type'),
        vendor=query.filters.get('vendor'),
        hostname=query.filters.get('hostname'),
        page=query.page,
    )
    return query.answer(
        req, 'devices', 'devices', devices, functools.partial(_to_json, req)
    )


def get_device(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return webob.Response(
        json_body=_to_json(req, device_db.get(request.path_uuid(req, 'uuid')))
    )


def disable_device(req: webob.Request) -> webob.Response:
    """Servers keep what they have of it; the answer warns of them."""
    request.authorize(req)
    response = _set_status(req, hardware.Status.MAINTAINING)
    uuid = request.path_uuid(req, 'uuid')
    holders = sorted(
        instance_uuid
        for _project, instance_uuid in deployable_db.get_holders(uuid)
        if instance_uuid is not None
    )
    if holders:
        text = (
            f'device {uuid} is disabled, and servers keep what they have of '
            f'it until they are deleted or moved: '
            f'{reason.some(holders, _MOST_TOLD)}'
        )
        LOG.warning(text)
        warning.add(response, [text])
    return response


def enable_device(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return _set_status(req, hardware.Status.ENABLED)


def _set_status(req: webob.Request, status: hardware.Status) -> webob.Response:
    hurrying.order(
        device_db.set_status(request.path_uuid(req, 'uuid'), status)
    )
    return webob.Response(status=204, content_type=None)


def _to_json(
    req: webob.Request, device: device_db.DeviceRow
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        'uuid': device['uuid'],
        'type': device['type'],
        'vendor': device['vendor_id'],
        'model': device['product'],
        # Cyborg has JSON in a string here, and any text in the other info.
        'std_board_info': json.dumps(
            {
                'product_id': device['product_id'],
                'address': device['address'],
                'numa_node': device['numa_node'],
                'driver': device['driver'],
            }
        ),
        'vendor_board_info': device['vendor'],
        'hostname': device['hostname'],
        'links': representation.link(req, 'devices', device['uuid']),
        **representation.times(device),
    }
    if microversion.is_at_least(req, '2.3'):
        shown['status'] = device['status']
    if microversion.is_at_least(req, '2.4'):
        shown['fault'] = device['fault']
        shown['attributes'] = device['attributes']
        shown['unclean_attach_handles'] = [
            {
                'attach_handle_uuid': handle['uuid'],
                'deployable_name': handle['deployable'],
                'reason': handle['reason'],
            }
            for handle in device['unclean']
        ]
    if microversion.is_at_least(req, '2.5'):
        shown['is_published'] = device['is_published']
    return shown
