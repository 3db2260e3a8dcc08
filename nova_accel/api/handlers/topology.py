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

"""``/topology``: who has which part of which device, on all hosts."""

from typing import Any

import webob

from nova_accel import conf
from nova_accel.api.http import paging
from nova_accel.api.http import request
from nova_accel.db import fleet as fleet_db
from nova_accel.model import paging as paging_model
from nova_accel.model.fleet import fleet_wire

CONF = conf.CONF

#: How many hosts a page has, unless the client asks for another number.
_HOSTS = 100


def list_topology(req: webob.Request) -> webob.Response:
    """Hosts with their devices, units, and the ARQs that have these."""
    request.authorize(req)
    arguments = request.query(req)
    limit = paging_model.parse_limit(arguments.get('limit', str(_HOSTS)))
    found = fleet_db.read_page(
        CONF.nova_accel.host_silence_s,
        limit,
        arguments.get('marker'),
        arguments.get('hostname'),
    )
    body: dict[str, Any] = {'topology': fleet_wire.to_json(found.ours)}
    if found.last is not None:
        body['topology_links'] = paging.next_links(
            req, 'topology', limit, found.last
        )
    return webob.Response(json_body=body)
