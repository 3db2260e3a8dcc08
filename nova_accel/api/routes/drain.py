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

"""``/drains`` and ``/hosts/{hostname}/drain``."""

from nova_accel.api.handlers import drain
from nova_accel.api.http import route
from nova_accel.api.policies import drain as policies
from nova_accel.api.schemas import drain as schemas

ROUTES: route.Table = {
    '/drains': {
        'GET': route.Route(
            drain.list_drains,
            'List the hosts that are drained',
            policies.LIST,
            since='2.4',
        ),
    },
    '/hosts/{hostname}/drain': {
        'GET': route.Route(
            drain.get_drain,
            'Show why a host is drained, and until when',
            policies.LIST,
            since='2.4',
        ),
        'PUT': route.Route(
            drain.begin_drain,
            'Give the devices of a host to no more servers',
            policies.BEGIN,
            body=schemas.DRAIN,
            since='2.4',
        ),
        'DELETE': route.Route(
            drain.end_drain,
            'Give the devices of a host to servers again',
            policies.END,
            since='2.4',
        ),
    },
}
