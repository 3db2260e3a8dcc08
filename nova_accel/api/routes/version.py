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

"""The version documents."""

from nova_accel.api.handlers import version
from nova_accel.api.http import route

ROUTES: route.Table = {
    '': {
        'GET': route.Route(
            version.list_versions, 'List the versions of the API', None
        ),
    },
    '/v2': {
        'GET': route.Route(
            version.get_version, 'Show version 2 of the API', None
        ),
    },
}
