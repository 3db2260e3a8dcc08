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

"""``/servers/{uuid}/accelerators/replace``."""

from nova_accel.api.handlers import replacement
from nova_accel.api.http import route
from nova_accel.api.policies import accelerator_request as arq_policies
from nova_accel.api.policies import replacement as policies
from nova_accel.api.schemas import replacement as schemas

ROUTES: route.Table = {
    '/servers/{uuid}/accelerators/replace': {
        'POST': route.Route(
            replacement.replace_failed,
            'Replace failed accelerators of a server, and wait for that',
            policies.REPLACE,
            further_rules=(arq_policies.ALL_PROJECTS,),
            body=schemas.REPLACE,
            since='2.5',
        ),
    },
}
