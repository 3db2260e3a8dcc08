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

"""The URL surface, and how a request finds its handler."""

from collections.abc import Callable
from collections.abc import Mapping

import routes
import webob
import webob.exc

from nova_accel.api.handlers import accelerator_request
from nova_accel.api.handlers import attribute
from nova_accel.api.handlers import binding
from nova_accel.api.handlers import bitstream
from nova_accel.api.handlers import deployable
from nova_accel.api.handlers import device
from nova_accel.api.handlers import device_profile
from nova_accel.api.handlers import fpga
from nova_accel.api.handlers import host
from nova_accel.api.handlers import programming
from nova_accel.api.handlers import version

Handler = Callable[[webob.Request], webob.Response]

#: Path -> HTTP method -> handler.
Table = Mapping[str, Mapping[str, Handler]]

#: Public, below ``/accelerator``.
VERSIONS: Table = {
    '': {'GET': version.list_versions},
    '/v2': {'GET': version.get_version},
}

#: Below ``/accelerator/v2``. Path items have no patterns, so that the handler
#: can answer a wrong one with the reason.
API: Table = {
    '/device_profiles': {
        'GET': device_profile.list_device_profiles,
        'POST': device_profile.create_device_profile,
        'DELETE': device_profile.delete_device_profiles,
    },
    '/device_profiles/{uuid}': {
        'GET': device_profile.get_device_profile,
        'PUT': device_profile.update_device_profile,
        'DELETE': device_profile.delete_device_profile,
    },
    '/device_profiles/{uuid}/explain': {
        'GET': device_profile.explain_device_profile,
    },
    '/accelerator_requests': {
        'GET': accelerator_request.list_arqs,
        'POST': accelerator_request.create_arqs,
        'PATCH': accelerator_request.patch_arqs,
        'DELETE': accelerator_request.delete_arqs,
    },
    '/accelerator_requests/{uuid}': {
        'GET': accelerator_request.get_arq,
        'PATCH': accelerator_request.patch_arq,
        'DELETE': accelerator_request.delete_arq,
    },
    '/devices': {
        'GET': device.list_devices,
    },
    '/devices/{uuid}': {
        'GET': device.get_device,
    },
    '/devices/{uuid}/disable': {
        'POST': device.disable_device,
    },
    '/devices/{uuid}/enable': {
        'POST': device.enable_device,
    },
    '/deployables': {
        'GET': deployable.list_deployables,
    },
    '/deployables/{uuid}': {
        'GET': deployable.get_deployable,
    },
    '/deployables/{uuid}/program': {
        'PATCH': deployable.program_deployable,
    },
    # openstacksdk has the uuid in the path twice.
    '/deployables/{uuid}/program/{same_uuid}': {
        'PATCH': deployable.program_deployable_again_named,
    },
    '/attributes': {
        'GET': attribute.list_attributes,
        'POST': attribute.create_attribute,
    },
    '/attributes/{uuid}': {
        'GET': attribute.get_attribute,
        'DELETE': attribute.delete_attribute,
    },
    '/fpga/{deployable_uuid}': {
        'POST': fpga.program_fpga,
    },
    '/programmings': {
        'GET': programming.list_programmings,
    },
    '/bitstreams/{uuid}/prefetch': {
        'POST': bitstream.prefetch,
    },
    '/hosts/{hostname}': {
        'PUT': host.report,
    },
    '/hosts/{hostname}/cleaning': {
        'PUT': host.set_cleaning,
    },
    '/hosts/{hostname}/provisioning': {
        'PUT': host.set_provisioning,
    },
    '/hosts/{hostname}/programmings/{uuid}': {
        'PUT': host.set_programming,
    },
    '/hosts/{hostname}/instances': {
        'GET': binding.list_bindings,
    },
    '/hosts/{hostname}/instances/{instance_uuid}': {
        'DELETE': binding.delete_unadopted,
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}': {
        'GET': binding.get_binding,
        'PUT': binding.acquire,
        'DELETE': binding.release,
    },
    '/hosts/{hostname}/instances/{instance_uuid}/{role}/arqs': {
        'PUT': binding.adopt,
    },
}


class Router:
    """Finds the handler of a request in a table.

    A slash at the end of the path is ignored, as by Cyborg.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._mapper = routes.Mapper(explicit=True)
        for path in table:
            self._mapper.connect(path, path)
        # Routes would make its expressions at the first request, and two
        # threads would make them at once.
        self._mapper.create_regs([])

    def handler(self, request: webob.Request) -> Handler:
        """The handler; the path's items are in ``request.urlvars`` then.

        :raises HTTPNotFound: no such path.
        :raises HTTPMethodNotAllowed: no such method; ``Allow`` has those that
            there are.
        """
        found = self._mapper.routematch(request.path_info.removesuffix('/'))
        if found is None:
            raise webob.exc.HTTPNotFound()
        request.urlvars, route = found
        methods = self._table[route.name]
        if request.method not in methods:
            raise webob.exc.HTTPMethodNotAllowed(
                headers={'Allow': ', '.join(methods)}
            )
        return methods[request.method]
