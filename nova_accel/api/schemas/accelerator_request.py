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

"""The creation and the binding of accelerator requests (ARQs)."""

from nova_accel.api.schemas import scalars

#: More than any instance can have, and few enough for one statement.
MAX_ARQS = 256

CREATE: scalars.Schema = {
    'type': 'object',
    'properties': {
        # No profile has an empty name, which is answered with 404 as by
        # Cyborg.
        'device_profile_name': scalars.TEXT,
        'image_uuid': scalars.UUID_OR_NULL,
    },
    'required': ['device_profile_name'],
}

#: ARQ uuid -> JSON patch. ``nova_accel.api.handlers.arq_patch`` knows the
#: operations.
PATCH: scalars.Schema = {
    'type': 'object',
    'propertyNames': scalars.UUID,
    'minProperties': 1,
    'maxProperties': MAX_ARQS,
    'additionalProperties': {
        'type': 'array',
        'minItems': 1,
        'maxItems': 16,
        'items': {
            'type': 'object',
            'properties': {'op': scalars.TEXT, 'path': scalars.TEXT},
            'required': ['op', 'path'],
        },
    },
}

#: The fields that a patch gives to one ARQ.
BINDING = scalars.strict_object(
    {
        'hostname': scalars.HOSTNAME,
        'device_rp_uuid': scalars.UUID,
        'instance_uuid': scalars.UUID,
        'project_id': scalars.NAME,
    },
    'project_id',
)
