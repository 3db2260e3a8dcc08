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

"""``/servers/{uuid}/accelerators/replace``."""

import webob

from nova_accel.api.compute import replacing
from nova_accel.api.http import request


def replace_failed(req: webob.Request) -> webob.Response:
    """Replace failed devices of a server; answers when that is done."""
    context = request.authorize(req)
    body = request.json_body(req)
    replacing.replace(context, request.path_uuid(req, 'uuid'), body.get('arq'))
    return webob.Response(status=204, content_type=None)
