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

"""``/topology``."""

from nova_accel.api.handlers import topology
from nova_accel.api.http import route
from nova_accel.api.policies import topology as policies

ROUTES: route.Table = {
    '/topology': {
        'GET': route.Route(
            topology.list_topology,
            'List hosts with their devices, the units of these, and who has '
            'each unit',
            policies.LIST,
            since='2.4',
            query={
                'limit': route.Argument('How many hosts at most'),
                'marker': route.Argument(
                    'Name of the last host that is known'
                ),
                'hostname': route.Argument('The only host'),
            },
        ),
    },
}
