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

"""The calls of the API, one table per resource.

All that the API and its OpenAPI document know of a call is said here once.
Path items have no patterns, so that the handler can answer a wrong one with
the reason.
"""

from nova_accel.api.http import route
from nova_accel.api.routes import accelerator_request
from nova_accel.api.routes import attribute
from nova_accel.api.routes import binding
from nova_accel.api.routes import bitstream
from nova_accel.api.routes import deployable
from nova_accel.api.routes import device
from nova_accel.api.routes import device_profile
from nova_accel.api.routes import drain
from nova_accel.api.routes import fpga
from nova_accel.api.routes import host
from nova_accel.api.routes import programming
from nova_accel.api.routes import server
from nova_accel.api.routes import topology
from nova_accel.api.routes import usage
from nova_accel.api.routes import version

#: Public, below ``/accelerator``.
VERSIONS: route.Table = version.ROUTES

#: Below ``/accelerator/v2``.
API: route.Table = {
    **device_profile.ROUTES,
    **accelerator_request.ROUTES,
    **device.ROUTES,
    **deployable.ROUTES,
    **attribute.ROUTES,
    **fpga.ROUTES,
    **programming.ROUTES,
    **bitstream.ROUTES,
    **host.ROUTES,
    **drain.ROUTES,
    **binding.ROUTES,
    **topology.ROUTES,
    **server.ROUTES,
    **usage.ROUTES,
}
