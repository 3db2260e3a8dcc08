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

"""``/programmings``."""

from nova_accel.api.handlers import programming
from nova_accel.api.http import paging
from nova_accel.api.http import route
from nova_accel.api.policies import programming as policies

ROUTES: route.Table = {
    '/programmings': {
        'GET': route.Route(
            programming.list_programmings,
            'List the programmings of FPGA regions, newest first',
            policies.LIST,
            since='2.4',
            query={
                'hostname': route.Argument('Nodename'),
                'device_uuid': route.Argument('Uuid of a device'),
                'deployable_uuid': route.Argument(
                    'Uuid of a deployable in the region'
                ),
                'instance_uuid': route.Argument('Uuid of an instance'),
                'bitstream_id': route.Argument('Uuid of an image in Glance'),
                'project_id': route.Argument('Project that asked for it'),
                **paging.ARGUMENTS,
            },
        ),
    },
}
