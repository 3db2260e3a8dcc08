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

"""A server, as its owner and Nova's metadata API name it."""

from nova_accel.api.schemas import scalars

#: Nova sends more, which is not looked at.
VENDORDATA: scalars.Schema = {
    'type': 'object',
    'properties': {
        'project-id': scalars.TEXT,
        'instance-id': scalars.UUID,
    },
    'required': ['project-id', 'instance-id'],
}

#: Without an ARQ, all that have failed are to be replaced.
REPLACE = scalars.strict_object({'arq': scalars.UUID}, 'arq')

#: Null takes away what the server has.
SET = scalars.strict_object(
    {'device_profile': {'anyOf': [scalars.NAME, {'type': 'null'}]}}
)
