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

"""A device profile; the model checks the keys of its groups."""

from nova_accel.api.schemas import scalars
from nova_accel.model.fleet import room_guest

GROUP: scalars.Schema = {
    'type': 'object',
    'propertyNames': scalars.NAME,
    # Some clients send how many units are wanted as a number.
    'additionalProperties': {**scalars.TEXT, 'type': ['string', 'integer']},
    'maxProperties': 64,
}

GROUPS: scalars.Schema = {
    'type': 'array',
    'items': GROUP,
    'minItems': 1,
    'maxItems': 64,
}

#: Properties that are not known are let through, as Cyborg does.
PROFILE: scalars.Schema = {
    'type': 'object',
    'properties': {
        'name': {'type': 'string'},
        'groups': GROUPS,
        'description': {'anyOf': [scalars.TEXT, {'type': 'null'}]},
        'uuid': scalars.UUID_OR_NULL,
    },
    'required': ['name', 'groups'],
}

#: The handler checks it in parts, to answer in Cyborg's words.
CREATE: scalars.Schema = {
    'type': 'array',
    'items': PROFILE,
    'minItems': 1,
    'maxItems': 1,
}

#: The name may be there, but it cannot be changed.
UPDATE: scalars.Schema = {**PROFILE, 'required': ['groups']}

#: How many servers need room, and uuid -> trouble of each that may move.
ROOM = scalars.strict_object(
    {
        'count': {'type': 'integer', 'minimum': 1, 'maximum': 16},
        'servers': {
            'type': 'object',
            'propertyNames': scalars.UUID,
            'additionalProperties': {
                'type': 'integer',
                'minimum': 0,
                'maximum': room_guest.MAX_TROUBLE,
            },
            'maxProperties': 20_000,
        },
    }
)
