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

"""``/device_profiles``."""

from nova_accel.api.handlers import availability
from nova_accel.api.handlers import device_profile
from nova_accel.api.handlers import profile_explanation
from nova_accel.api.handlers import room
from nova_accel.api.http import paging
from nova_accel.api.http import route
from nova_accel.api.policies import device_profile as policies
from nova_accel.api.schemas import device_profile as schemas

_NAMES = route.Argument('Names, separated by commas')

#: Bytes: the uuids of 20,000 servers.
_MAX_ROOM_BYTES = 1024 * 1024

ROUTES: route.Table = {
    '/device_profiles': {
        'GET': route.Route(
            device_profile.list_device_profiles,
            'List device profiles',
            policies.LIST,
            query={'name': _NAMES, **paging.ARGUMENTS},
        ),
        'POST': route.Route(
            device_profile.create_device_profile,
            'Create a device profile',
            policies.CREATE,
            body=schemas.CREATE,
        ),
        'DELETE': route.Route(
            device_profile.delete_device_profiles,
            'Delete device profiles',
            policies.DELETE,
            query={'value': _NAMES},
        ),
    },
    '/device_profiles/{uuid}': {
        'GET': route.Route(
            device_profile.get_device_profile,
            'Show a device profile, from 2.2 on also by its name',
            policies.SHOW,
        ),
        'PUT': route.Route(
            device_profile.update_device_profile,
            'Replace all of a device profile but its name',
            policies.UPDATE,
            body=schemas.UPDATE,
            wrapper='device_profile',
            since='2.4',
            is_hidden_before=True,
        ),
        'DELETE': route.Route(
            device_profile.delete_device_profile,
            'Delete a device profile; or several, by names with commas',
            policies.DELETE,
        ),
    },
    '/device_profiles/{uuid}/availability': {
        'GET': route.Route(
            availability.show_availability,
            'Tell how many servers with a device profile could start now',
            policies.SHOW_AVAILABILITY,
            since='2.5',
            further_rules=(policies.SHOW_EXACT_AVAILABILITY,),
        ),
    },
    '/device_profiles/{uuid}/room': {
        'POST': route.Route(
            room.plan_room,
            'Plan the fewest moves of servers after which others with a '
            'device profile find room',
            policies.PLAN_ROOM,
            body=schemas.ROOM,
            max_body_bytes=_MAX_ROOM_BYTES,
            since='2.5',
        ),
    },
    '/device_profiles/{uuid}/explain': {
        'GET': route.Route(
            profile_explanation.explain_device_profile,
            'Tell which hosts could serve a device profile, and why others '
            'cannot',
            policies.EXPLAIN,
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
