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

"""``/hosts/{hostname}/instances``."""

from nova_accel.api.handlers import binding
from nova_accel.api.http import route
from nova_accel.api.policies import binding as policies
from nova_accel.api.schemas import binding as schemas

ROUTES: route.Table = {
    '/hosts/{hostname}/instances': {
        'GET': route.Route(
            binding.list_bindings,
            'List what instances have of a host',
            policies.LIST,
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}': {
        'DELETE': route.Route(
            binding.delete_unadopted,
            'Delete what Nova has bound and the host has not taken over',
            policies.RELEASE,
            query={'arqs': route.Argument('Uuids, separated by commas')},
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}': {
        'GET': route.Route(
            binding.get_binding,
            'Show what an instance has of a host',
            policies.SHOW,
        ),
        'PUT': route.Route(
            binding.acquire,
            'Acquire accelerators for an instance',
            policies.ACQUIRE,
            body=schemas.ACQUIRE,
        ),
        'DELETE': route.Route(
            binding.release,
            'Release what an instance has of a host',
            policies.RELEASE,
            query={
                'attempt': route.Argument(
                    'Number of the newest attempt to release'
                )
            },
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}/arqs': {
        'PUT': route.Route(
            binding.adopt,
            'Take over accelerator requests',
            policies.ACQUIRE,
            body=schemas.ADOPT,
        ),
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}/additions': {
        'PUT': route.Route(
            binding.add,
            'Acquire accelerators beside those of an instance',
            policies.ACQUIRE,
            body=schemas.ADD,
        ),
    },
}
