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

"""The simple values of the bodies; see :mod:`nova_accel.model.bounds`."""

from typing import Any

from nova_accel import reason
from nova_accel.model import bounds

Schema = dict[str, Any]

TEXT: Schema = {
    'type': 'string',
    'maxLength': bounds.MAX_TEXT,
    'pattern': bounds.TEXT,
}

NAME: Schema = {**TEXT, 'minLength': 1}

#: A name that can be printed as it is.
PLAIN_NAME: Schema = {'type': 'string', 'pattern': bounds.PLAIN_NAME}

#: The name of a nova-compute.
SERVICE_HOST: Schema = {'type': 'string', 'pattern': bounds.SERVICE_HOST}

#: Why something is not as it should be.
REASON: Schema = {**TEXT, 'maxLength': reason.MAX_LENGTH}

UUID: Schema = {'type': 'string', 'pattern': bounds.UUID}

UUID_OR_NULL: Schema = {'anyOf': [UUID, {'type': 'null'}]}

#: The number of a NUMA node of a host.
NUMA_NODE: Schema = {
    'type': 'integer',
    'minimum': 0,
    'maximum': bounds.MAX_NUMA_NODE,
}

#: Nova's nodename.
HOSTNAME: Schema = {'type': 'string', 'pattern': r'^[a-zA-Z0-9._:-]{1,255}\Z'}

#: The name of a trait or a resource class in Placement.
PLACEMENT_NAME: Schema = {'type': 'string', 'pattern': bounds.PLACEMENT_NAME}

TRAITS: Schema = {
    'type': 'array',
    'items': PLACEMENT_NAME,
    'maxItems': bounds.MAX_TRAITS,
}


def hexadecimal(least: int, most: int) -> Schema:
    """From ``least`` to ``most`` lower-case hexadecimal digits."""
    return {'type': 'string', 'pattern': rf'^[0-9a-f]{{{least},{most}}}\Z'}


def strict_object(properties: Schema, *optional: str) -> Schema:
    """An object with these properties and no others."""
    return {
        'type': 'object',
        'properties': properties,
        'required': [name for name in properties if name not in optional],
        'additionalProperties': False,
    }
