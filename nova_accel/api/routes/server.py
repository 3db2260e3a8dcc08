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

"""``/servers/{uuid}/accelerators`` and ``/vendordata``."""

from nova_accel.api.handlers import server
from nova_accel.api.http import route
from nova_accel.api.policies import accelerator_request as arq_policies
from nova_accel.api.policies import server as policies
from nova_accel.api.schemas import server as schemas

#: Bytes: the longest user data and metadata of a server, in JSON.
_MAX_VENDORDATA_BYTES = 1024 * 1024

ROUTES: route.Table = {
    '/servers/{uuid}/accelerators': {
        'GET': route.Route(
            server.show_accelerators,
            'Show whether the accelerators of a server work',
            policies.SHOW,
            further_rules=(arq_policies.ALL_PROJECTS,),
            since='2.5',
        ),
        'PUT': route.Route(
            server.set_profile,
            'Give a server another device profile, or none, and wait for that',
            policies.SET,
            further_rules=(arq_policies.ALL_PROJECTS,),
            body=schemas.SET,
            since='2.5',
        ),
    },
    '/servers/{uuid}/accelerators/replace': {
        'POST': route.Route(
            server.replace_failed,
            'Replace failed accelerators of a server, and wait for that',
            policies.REPLACE,
            further_rules=(arq_policies.ALL_PROJECTS,),
            body=schemas.REPLACE,
            since='2.5',
        ),
    },
    # Nova's metadata API asks for no microversion.
    '/vendordata': {
        'POST': route.Route(
            server.show_to_guest,
            "Show a guest whether its accelerators work, for Nova's dynamic "
            'vendordata',
            policies.VENDORDATA,
            body=schemas.VENDORDATA,
            max_body_bytes=_MAX_VENDORDATA_BYTES,
        ),
    },
}
