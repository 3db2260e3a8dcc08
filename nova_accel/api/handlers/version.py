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

"""The version documents, in Cyborg's shape: clients discover by them."""

from typing import Any

import webob

from nova_accel.api.http import microversion
from nova_accel.api.http import representation

_RANGE = {
    'max_version': microversion.VERSIONS[-1],
    'min_version': microversion.VERSIONS[0],
}


def list_versions(req: webob.Request) -> webob.Response:
    version: dict[str, Any] = {
        'id': 'v2',
        'status': 'CURRENT',
        **_RANGE,
        'links': representation.link(req, 'v2'),
    }
    return webob.Response(
        json_body={
            'name': 'OpenStack Accelerator API (nova_accel)',
            'description': (
                'Lifecycle management of hardware accelerators in '
                'Nova, compatible with the v2 API of Cyborg.'
            ),
            'versions': [version],
            'default_version': version,
        }
    )


def get_version(req: webob.Request) -> webob.Response:
    return webob.Response(
        json_body={
            'id': 'v2.0',
            'status': 'CURRENT',
            **_RANGE,
            'links': representation.link(req, 'v2', ''),
        }
    )
