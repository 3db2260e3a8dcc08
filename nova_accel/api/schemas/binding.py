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

#: The place of an ARQ in a device profile. The name is empty if there is none.
_PLACE = scalars.strict_object(
    {
        'device_profile_name': scalars.TEXT,
        'device_profile_group_id': {
            'type': 'integer',
            'minimum': 0,
            'maximum': arq_types.MAX_GROUP_ID,
        },
    }
)

_ARQS: scalars.Schema = {
    'type': 'array',
    'items': scalars.UUID,
    'maxItems': accelerator_request.MAX_ARQS,
    'uniqueItems': True,
}

#: The ARQs that the instance is to get besides, with groups in the form that
#: is stored, and those that it keeps if the limits of its project count.
ADD = scalars.strict_object(
    {
        'attempt': ATTEMPT,
        'project_id': scalars.NAME,
        'arqs': {
            'type': 'array',
            'items': scalars.strict_object(
                {
                    **_PLACE['properties'],
                    'group': {
                        **device_profile.GROUP,
                        'additionalProperties': scalars.TEXT,
                    },
                    'device_rp_uuid': scalars.UUID,
                }
            ),
            'minItems': 1,
            'maxItems': accelerator_request.MAX_ARQS,
        },
        'kept': _ARQS,
    },
    'kept',
)

#: The ARQs that Nova's own Cyborg client has bound to the instance, or that
#: it holds on the host. There may be none only if some are leaving.
ADOPT = scalars.strict_object(
    {
        'attempt': ATTEMPT,
        'arqs': _ARQS,
        'from_role': ROLE,
        'is_new': {'type': 'boolean'},
        'names': {
            'type': 'object',
            'propertyNames': scalars.UUID,
            'additionalProperties': _PLACE,
            'maxProperties': accelerator_request.MAX_ARQS,
        },
        'leaving': _ARQS,
    },
    'from_role',
    'is_new',
    'names',
    'leaving',
)
