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

"""``/drains`` and ``/hosts/{hostname}/drain``: hosts that are drained."""

import datetime
from typing import Any

import webob

from nova_accel.api.http import request
from nova_accel.db import draining
from nova_accel.model.fleet import host_drain


def list_drains(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return webob.Response(
        json_body={'drains': [_to_json(row) for row in draining.get_all()]}
    )


def get_drain(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return _answer(request.path_hostname(req))


def begin_drain(req: webob.Request) -> webob.Response:
    """Disable the devices of a host; the same again changes nothing."""
    context = request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    until = body.get('until')
    draining.begin(
        hostname,
        body['reason'],
        None if until is None else host_drain.parse_until(until),
        context.user_id,
    )
    return _answer(hostname)


def end_drain(req: webob.Request) -> webob.Response:
    """Enable the devices that the drain has disabled."""
    request.authorize(req)
    draining.end(request.path_hostname(req))
    return webob.Response(status=204, content_type=None)


def _answer(hostname: str) -> webob.Response:
    return webob.Response(
        json_body={'drain': _to_json(draining.get(hostname))}
    )


def _to_json(row: draining.DrainRow) -> dict[str, Any]:
    return {
        'hostname': row['hostname'],
        'reason': row['reason'],
        'until': _iso(row['until']),
        'is_overdue': row['is_overdue'],
        'requested_at': _iso(row['requested_at']),
        'requested_by': row['requested_by'],
        'devices': row['devices'],
    }


def _iso(time: datetime.datetime | None) -> str | None:
    return None if time is None else time.isoformat()
