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

"""``/deployables``."""

from nova_accel.api.handlers import deployable
from nova_accel.api.http import paging
from nova_accel.api.http import route
from nova_accel.api.policies import deployable as policies
from nova_accel.api.schemas import programming as schemas

ROUTES: route.Table = {
    '/deployables': {
        'GET': route.Route(
            deployable.list_deployables,
            'List deployables',
            policies.LIST,
            query={
                'hostname': route.Argument('Nodename'),
                'device_uuid': route.Argument('Uuid of a device'),
                'bitstream_id': route.Argument('Uuid of an image in Glance'),
                'filters.field': route.Argument("Cyborg's, name"),
                'filters.value': route.Argument('The name of a deployable'),
                **paging.ARGUMENTS,
            },
        ),
    },
    '/deployables/{uuid}': {
        'GET': route.Route(
            deployable.get_deployable, 'Show a deployable', policies.SHOW
        ),
    },
    '/deployables/{uuid}/program': {
        'PATCH': route.Route(
            deployable.program_deployable,
            'Program the region of a deployable, and wait for that',
            policies.PROGRAM,
            or_rule=policies.PROGRAM_OWN,
            further_rules=(policies.LOAD_SHELL,),
            body=schemas.PATCH,
        ),
    },
    # openstacksdk has the uuid in the path twice.
    '/deployables/{uuid}/program/{same_uuid}': {
        'PATCH': route.Route(
            deployable.program_deployable_again_named,
            'The same, as openstacksdk calls it',
            policies.PROGRAM,
            or_rule=policies.PROGRAM_OWN,
            further_rules=(policies.LOAD_SHELL,),
            body=schemas.PATCH,
            is_again=True,
        ),
    },
}
