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

from nova_accel import exceptions
from nova_accel.api.compute import hurrying
from nova_accel.api.http import microversion
from nova_accel.api.http import request
from nova_accel.api.schemas import drain as schemas
from nova_accel.db import draining
from nova_accel.model import iso_time


def list_drains(req: webob.Request) -> webob.Response:
    request.authorize(req)
    has_start = _has_start(req)
    rows = draining.get_all(with_announced=has_start)
    return webob.Response(
        json_body={'drains': [_to_json(row, has_start) for row in rows]}
    )


def get_drain(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return _answer(req, request.path_hostname(req))


def begin_drain(req: webob.Request) -> webob.Response:
    """Disable the devices of a host, or announce that.

    The same again changes nothing.
    """
    context = request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    if not _has_start(req):
        request.check(body, schemas.DRAIN_OF_2_4)
    start, until = (
        None if body.get(name) is None else iso_time.parse(name, body[name])
        for name in ('from', 'until')
    )
    if start is not None and until is not None and start >= until:
        raise exceptions.InvalidRequest('from: the time is not before until')
    draining.begin(hostname, body['reason'], until, context.user_id, start)
    hurrying.order(hostname)
    return _answer(req, hostname)


def end_drain(req: webob.Request) -> webob.Response:
    """Enable the devices that the drain has disabled."""
    request.authorize(req)
    hostname = request.path_hostname(req)
    draining.end(hostname)
    hurrying.order(hostname)
    return webob.Response(status=204, content_type=None)


def _has_start(req: webob.Request) -> bool:
    """Whether the client knows drains that are announced."""
    return microversion.is_at_least(req, '2.5')


def _answer(req: webob.Request, hostname: str) -> webob.Response:
    has_start = _has_start(req)
    row = draining.get(hostname, with_announced=has_start)
    return webob.Response(json_body={'drain': _to_json(row, has_start)})


def _to_json(row: draining.DrainRow, has_start: bool) -> dict[str, Any]:
    return {
        'hostname': row['hostname'],
        'reason': row['reason'],
        **({'from': _iso(row['start'])} if has_start else {}),
        'until': _iso(row['until']),
        'is_overdue': row['is_overdue'],
        'requested_at': _iso(row['requested_at']),
        'requested_by': row['requested_by'],
        'devices': row['devices'],
    }


def _iso(time: datetime.datetime | None) -> str | None:
    return None if time is None else time.isoformat()
