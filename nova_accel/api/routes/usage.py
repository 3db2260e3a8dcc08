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

"""``/usage``."""

from nova_accel.api.handlers import usage
from nova_accel.api.http import route
from nova_accel.api.policies import usage as policies

ROUTES: route.Table = {
    '/usage': {
        'GET': route.Route(
            usage.show_usage,
            'Show how long projects have held which units',
            policies.SHOW,
            further_rules=(policies.ALL_PROJECTS,),
            since='2.5',
            query={
                'start': route.Argument(
                    'A time of ISO 8601, by default 28 days before the end'
                ),
                'end': route.Argument('Another one, by default now'),
                'project_id': route.Argument('The only project'),
            },
        ),
    },
}
