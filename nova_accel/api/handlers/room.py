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


"""The moves after which servers with a device profile would find room."""

import time
from typing import Any

import webob

from nova_accel import exceptions
from nova_accel.api.handlers import device_profile as device_profile_handler
from nova_accel.api.http import request
from nova_accel.db import held_units
from nova_accel.model.fleet import room_guest
from nova_accel.model.fleet import room_plan
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import known_stock

#: Seconds.
_SEARCHED_S = 5.0


def plan_room(req: webob.Request) -> webob.Response:
    """Only the servers that the body names may move.

    :raises NotFound: no pool is as large as a group of the profile
    :raises ServiceUnavailable: the free units are not known
    """
    request.authorize(req)
    body = request.json_body(req)
    # It may come as 1.0.
    servers = int(body['count'])
    profile = device_profile_handler.find(req)
    known = known_stock.current(known_stock.FRESH_S)
    if known is None:
        raise exceptions.ServiceUnavailable(
            'the database of accelerators gives no answer'
        )
    wanted = known.parts(device_profile.parse_groups(profile['groups']))
    end = time.monotonic() + _SEARCHED_S
    found = room_plan.plan(
        known.pools(),
        room_guest.gather(held_units.get_all(), body['servers'], known.parts),
        wanted,
        servers,
        lambda: time.monotonic() > end,
    )
    return webob.Response(
        json_body={
            'room': {
                'device_profile_uuid': profile['uuid'],
                'device_profile_name': profile['name'],
                'count': servers,
                'is_proven': found.is_proven,
                'moves': None
                if found.moves is None
                else [_to_json(move) for move in found.moves],
            }
        }
    )


def _to_json(move: room_plan.RoomMove) -> dict[str, Any]:
    return {
        'server_uuid': move.server_uuid,
        'from': move.source,
        'to': move.target,
        'devices': [
            {'device_uuid': device, 'units': units}
            for device, units in sorted(move.units.items())
        ],
    }
