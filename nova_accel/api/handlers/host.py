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

"""``/hosts``: what nova-compute says of its devices."""

import webob

from nova_accel.api import bound_event
from nova_accel.api import policy
from nova_accel.api import request
from nova_accel.api.policies import host as policies
from nova_accel.api.schemas import host as schemas
from nova_accel.api.schemas import scalars
from nova_accel.db import host as host_db
from nova_accel.db import provisioning

#: Bytes. A function of a card is about 200 of them in a report, so there is
#: room for some forty thousand.
MAX_REPORT_BYTES = 8 * 1024 * 1024


def report(req: webob.Request) -> webob.Response:
    policy.authorize(request.context(req), policies.REPORT)
    hostname = req.urlvars['hostname']
    request.check(hostname, scalars.HOSTNAME)
    body = request.json_body(req, schemas.REPORT, MAX_REPORT_BYTES)
    host_db.report(
        hostname=hostname, node_uuid=body['node_uuid'],
        service_host=body['service_host'], devices=body['devices'],
        digest=body['digest'])
    return webob.Response(status=204, content_type=None)


def set_provisioning(req: webob.Request) -> webob.Response:
    """The ARQs whose devices the host makes again: all of them.

    Of those that are bound again nova-compute is told, as of a first binding.
    """
    policy.authorize(request.context(req), policies.REPORT)
    hostname = req.urlvars['hostname']
    request.check(hostname, scalars.HOSTNAME)
    body = request.json_body(req, schemas.PROVISIONING)
    bound_event.send(provisioning.replace(hostname, body['arqs']))
    return webob.Response(status=204, content_type=None)
