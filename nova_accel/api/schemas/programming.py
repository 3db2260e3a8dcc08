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

"""The programming of FPGA regions: who asks for it, what hosts say of it."""

from nova_accel.api.schemas import scalars

_TIME: scalars.Schema = {
    'type': 'string',
    'pattern': (
        '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}'
        r'([.][0-9]{1,6})?[+]00:00\Z'
    ),
}

_NAME_OR_NULL: scalars.Schema = {'anyOf': [scalars.NAME, {'type': 'null'}]}

RECORD = scalars.strict_object(
    {
        'device_uuid': scalars.UUID,
        'region': scalars.PLAIN_NAME,
        'bitstream_id': scalars.UUID,
        'project_id': _NAME_OR_NULL,
        'user_id': _NAME_OR_NULL,
        'instance_uuid': scalars.UUID_OR_NULL,
        'started_at': _TIME,
        'finished_at': {'anyOf': [_TIME, {'type': 'null'}]},
        'failure': {'anyOf': [scalars.REASON, {'type': 'null'}]},
    }
)

#: Cyborg's body. The handler checks the uuid, to answer in Cyborg's words.
PATCH: scalars.Schema = {
    'type': 'array',
    'minItems': 1,
    'maxItems': 1,
    'items': scalars.strict_object(
        {
            'op': {'const': 'replace'},
            # python-cyborgclient sends the latter.
            'path': {'enum': ['/bitstream_id', '/program']},
            'value': {
                'type': 'array',
                'minItems': 1,
                'maxItems': 1,
                'items': {
                    'type': 'object',
                    'properties': {'image_uuid': {'type': 'string'}},
                    'required': ['image_uuid'],
                },
            },
        }
    ),
}

FPGA = scalars.strict_object({'glance_bitstream_uuid': {'type': 'string'}})
