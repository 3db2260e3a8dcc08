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

"""Device profiles: anyone may read them, admins write them.

Only admins see which hosts could serve one, as this shows their devices.
"""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:device_profile:list'
SHOW = 'nova_accel:device_profile:show'
CREATE = 'nova_accel:device_profile:create'
EXPLAIN = 'nova_accel:device_profile:explain'
SHOW_AVAILABILITY = 'nova_accel:device_profile:show_availability'
SHOW_EXACT_AVAILABILITY = 'nova_accel:device_profile:show_exact_availability'
PLAN_ROOM = 'nova_accel:device_profile:plan_room'
UPDATE = 'nova_accel:device_profile:update'
DELETE = 'nova_accel:device_profile:delete'

RULES = (
    rule.rule(LIST, personas.READER, 'List device profiles.'),
    rule.rule(SHOW, personas.READER, 'Show a device profile.'),
    rule.rule(CREATE, personas.ADMIN, 'Create a device profile.'),
    rule.rule(
        EXPLAIN,
        personas.ADMIN,
        'Show which hosts could serve a device profile, and why '
        'others cannot.',
    ),
    rule.rule(
        SHOW_AVAILABILITY,
        personas.READER,
        'Show about how many servers with a device profile could start now.',
    ),
    rule.rule(
        SHOW_EXACT_AVAILABILITY,
        personas.ADMIN,
        'Show exactly how many servers with a device profile could start now, '
        'and on which hosts.',
    ),
    rule.rule(
        PLAN_ROOM,
        personas.ADMIN,
        'Plan which servers to move so that others with a device profile find '
        'room. The plan names hosts.',
    ),
    rule.rule(
        UPDATE, personas.ADMIN, 'Change what a device profile asks for.'
    ),
    rule.rule(DELETE, personas.ADMIN, 'Delete device profiles.'),
)
