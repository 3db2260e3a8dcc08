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

"""``/accelerator_requests``."""

from nova_accel.api.handlers import accelerator_request
from nova_accel.api.http import paging
from nova_accel.api.http import route
from nova_accel.api.policies import accelerator_request as policies
from nova_accel.api.policies import host as host_policies
from nova_accel.api.schemas import accelerator_request as schemas

#: The rules of which hosts and projects are seen.
_SEEING = (policies.ALL_PROJECTS, host_policies.SHOW)

_INSTANCE = route.Argument('Uuid of an instance')

ROUTES: route.Table = {
    '/accelerator_requests': {
        'GET': route.Route(
            accelerator_request.list_arqs,
            'List accelerator requests',
            policies.LIST,
            further_rules=_SEEING,
            query={
                'instance': _INSTANCE,
                'bind_state': route.Argument('resolved'),
                'hostname': route.Argument('Nodename', since='2.4'),
                'state': route.Argument('Such as Bound', since='2.4'),
                'project_id': route.Argument(
                    'Project of the owner', since='2.4'
                ),
                **paging.ARGUMENTS,
            },
        ),
        'POST': route.Route(
            accelerator_request.create_arqs,
            'Create the accelerator requests of a device profile',
            policies.CREATE,
            body=schemas.CREATE,
        ),
        'PATCH': route.Route(
            accelerator_request.patch_arqs,
            'Bind accelerator requests, or unbind them',
            policies.BIND,
            further_rules=(policies.SET_PROJECT,),
            body=schemas.PATCH,
        ),
        'DELETE': route.Route(
            accelerator_request.delete_arqs,
            'Delete accelerator requests, named or of an instance',
            policies.DELETE,
            further_rules=(policies.DELETE_BOUND,),
            query={
                'arqs': route.Argument('Uuids, separated by commas'),
                'instance': _INSTANCE,
            },
        ),
    },
    '/accelerator_requests/{uuid}': {
        'GET': route.Route(
            accelerator_request.get_arq,
            'Show an accelerator request',
            policies.SHOW,
            further_rules=_SEEING,
        ),
        'PATCH': route.Route(
            accelerator_request.patch_arq,
            'Bind an accelerator request, or unbind it',
            policies.BIND,
            further_rules=(policies.SET_PROJECT,),
            body=schemas.PATCH,
        ),
        'DELETE': route.Route(
            accelerator_request.delete_arq,
            'Delete accelerator requests',
            policies.DELETE,
            further_rules=(policies.DELETE_BOUND,),
        ),
    },
}
