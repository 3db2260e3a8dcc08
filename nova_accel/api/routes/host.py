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

"""``/hosts``, without the instances."""

from nova_accel.api.handlers import host
from nova_accel.api.http import route
from nova_accel.api.policies import host as policies
from nova_accel.api.schemas import host as schemas
from nova_accel.api.schemas import programming

#: Bytes. A report is sent in parts (``model/report_parts.py``). A cleaned
#: handle, or a device of the parts before, takes 40 bytes.
MAX_REPORT_BYTES = 8 * 1024 * 1024

ROUTES: route.Table = {
    '/hosts/{hostname}': {
        'PUT': route.Route(
            host.report,
            'Report the devices of a host',
            policies.REPORT,
            body=schemas.REPORT,
            max_body_bytes=MAX_REPORT_BYTES,
        ),
    },
    '/hosts/{hostname}/cleaning': {
        'PUT': route.Route(
            host.set_cleaning,
            'Tell what of a host was cleaned',
            policies.REPORT,
            body=schemas.CLEANING,
            max_body_bytes=MAX_REPORT_BYTES,
        ),
    },
    '/hosts/{hostname}/provisioning': {
        'PUT': route.Route(
            host.set_provisioning,
            'Tell what devices a host makes again',
            policies.REPORT,
            body=schemas.PROVISIONING,
            max_body_bytes=MAX_REPORT_BYTES,
        ),
    },
    '/hosts/{hostname}/programmings/{uuid}': {
        'PUT': route.Route(
            host.set_programming,
            'Tell that a programming has begun, or how it has ended',
            policies.REPORT,
            body=programming.RECORD,
        ),
    },
}
