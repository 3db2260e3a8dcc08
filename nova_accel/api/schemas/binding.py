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

"""The requests for what an instance is to hold on a host."""

from nova_accel.api.schemas import accelerator_request
from nova_accel.api.schemas import device_profile
from nova_accel.api.schemas import scalars
from nova_accel.model import arq_types
from nova_accel.model import attempt_number
from nova_accel.model import bounds

ATTEMPT: scalars.Schema = {
    'type': 'integer',
    'minimum': 0,
    'maximum': attempt_number.MAX,
}

ROLE: scalars.Schema = {'enum': [str(role) for role in arq_types.Role]}

#: With the name of a device profile or with groups, not both.
ACQUIRE = scalars.strict_object(
    {
        'attempt': ATTEMPT,
        'project_id': scalars.NAME,
        'device_profile_name': scalars.NAME,
        'groups': device_profile.GROUPS,
        'is_new': {'type': 'boolean'},
        'image_uuid': scalars.UUID_OR_NULL,
        'numa_nodes': {
            'type': 'array',
            'items': scalars.NUMA_NODE,
            'maxItems': bounds.MAX_NUMA_NODES,
            'uniqueItems': True,
        },
        'providers': {
            'type': 'object',
            'propertyNames': scalars.UUID,
            'maxProperties': 64,
            'additionalProperties': scalars.strict_object(
                {
                    'allocated': {
                        'type': 'object',
                        'propertyNames': scalars.PLACEMENT_NAME,
                        'additionalProperties': {
                            'type': 'integer',
                            'minimum': 1,
                            'maximum': 1024,
                        },
                        'minProperties': 1,
                        'maxProperties': 16,
                    },
                    'traits': scalars.TRAITS,
                }
            ),
        },
    },
    'device_profile_name',
    'groups',
    'image_uuid',
    'is_new',
    'numa_nodes',
)

#: ARQs that the instance holds -> the providers of those that are to replace
#: them.
REPLACE = scalars.strict_object(
    {
        'attempt': ATTEMPT,
        'arqs': {
            'type': 'object',
            'propertyNames': scalars.UUID,
            'additionalProperties': scalars.UUID,
            'minProperties': 1,
            'maxProperties': accelerator_request.MAX_ARQS,
        },
    }
)

#: The ARQs that Nova's own Cyborg client has bound to the instance, or that
#: it holds on the host in another role.
ADOPT = scalars.strict_object(
    {
        'attempt': ATTEMPT,
        'arqs': {
            'type': 'array',
            'items': scalars.UUID,
            'minItems': 1,
            'maxItems': accelerator_request.MAX_ARQS,
            'uniqueItems': True,
        },
        'from_role': ROLE,
        'is_new': {'type': 'boolean'},
    },
    'from_role',
    'is_new',
)
