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

"""``/attributes``."""

from nova_accel.api.handlers import attribute
from nova_accel.api.http import route
from nova_accel.api.policies import attribute as policies
from nova_accel.api.schemas import attribute as schemas

ROUTES: route.Table = {
    '/attributes': {
        'GET': route.Route(
            attribute.list_attributes,
            'List the attributes of deployables',
            policies.LIST,
            query={
                'deployable_id': route.Argument(
                    'Number or uuid of a deployable'
                ),
                'key': route.Argument('Key of the attributes'),
            },
        ),
        'POST': route.Route(
            attribute.create_attribute,
            'Note something of a deployable',
            policies.CREATE,
            body=schemas.CREATE,
            wrapper='attribute',
        ),
    },
    '/attributes/{uuid}': {
        'GET': route.Route(
            attribute.get_attribute, 'Show an attribute', policies.SHOW
        ),
        'DELETE': route.Route(
            attribute.delete_attribute,
            'Forget what was noted',
            policies.DELETE,
        ),
    },
}
