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

"""``/fpga``: the programming service, as its specification has it."""

import webob
import webob.exc

from nova_accel import exceptions
from nova_accel.api.compute import programming
from nova_accel.api.http import request


def program_fpga(req: webob.Request) -> webob.Response:
    """Program a region; answers when it is programmed."""
    try:
        context = request.authorize(req)
        body = request.json_body(req)
        [bitstream_uuid] = request.uuids(
            'glance_bitstream_uuid', [body['glance_bitstream_uuid']]
        )
        programming.program(
            context, request.path_uuid(req, 'deployable_uuid'), bitstream_uuid
        )
    except webob.exc.HTTPForbidden as error:
        raise _refusal(error.detail) from error
    except exceptions.NotAllowed as error:
        raise _refusal(error.public) from error
    return webob.Response(
        json_body={'msg': 'bitstream has been loaded successfully'}
    )


def _refusal(reason: str) -> webob.exc.HTTPUnprocessableEntity:
    return webob.exc.HTTPUnprocessableEntity(
        f'User is not authorized to use the resource: {reason}'
    )
