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

"""What each handler answers if it does what it is asked."""

from collections.abc import Mapping

from nova_accel.api.handlers import accelerator_request
from nova_accel.api.handlers import attribute
from nova_accel.api.handlers import availability
from nova_accel.api.handlers import binding
from nova_accel.api.handlers import bitstream
from nova_accel.api.handlers import deployable
from nova_accel.api.handlers import device
from nova_accel.api.handlers import device_profile
from nova_accel.api.handlers import drain
from nova_accel.api.handlers import fpga
from nova_accel.api.handlers import host
from nova_accel.api.handlers import profile_explanation
from nova_accel.api.handlers import programming
from nova_accel.api.handlers import room
from nova_accel.api.handlers import server
from nova_accel.api.handlers import topology
from nova_accel.api.handlers import usage
from nova_accel.api.handlers import version
from nova_accel.api.http import route
from openapi import schemas

#: HTTP status -> body, None if there is none.
Answers = Mapping[int, schemas.Schema | None]

_NO_BODY: Answers = {204: None}
_ACCEPTED: Answers = {202: None}

_ARQS = schemas.page_of('arqs', schemas.component('AcceleratorRequest'))
_BOUND_ARQS: Answers = {
    200: schemas.list_of('arqs', schemas.component('BoundAcceleratorRequest'))
}
_DRAIN: Answers = {200: schemas.one('drain', schemas.component('Drain'))}
_DEPLOYABLE: Answers = {200: schemas.component('Deployable')}


def _pages(name: str, component: str) -> Answers:
    return {200: schemas.page_of(name, schemas.component(component))}


OF_HANDLERS: Mapping[route.Handler, Answers] = {
    version.list_versions: {200: schemas.VERSIONS},
    version.get_version: {200: schemas.VERSION},
    device_profile.list_device_profiles: _pages(
        'device_profiles', 'DeviceProfile'
    ),
    device_profile.create_device_profile: {
        201: schemas.component('DeviceProfile')
    },
    device_profile.delete_device_profiles: _NO_BODY,
    device_profile.get_device_profile: {
        200: schemas.one('device_profile', schemas.component('DeviceProfile'))
    },
    device_profile.update_device_profile: {
        200: schemas.component('DeviceProfile')
    },
    device_profile.delete_device_profile: _NO_BODY,
    availability.show_availability: {200: schemas.component('Availability')},
    room.plan_room: {200: schemas.component('Room')},
    profile_explanation.explain_device_profile: {
        200: schemas.component('Explanation')
    },
    accelerator_request.list_arqs: {200: _ARQS},
    accelerator_request.create_arqs: {201: _ARQS},
    accelerator_request.patch_arqs: _ACCEPTED,
    accelerator_request.delete_arqs: _NO_BODY,
    accelerator_request.get_arq: {
        200: schemas.component('AcceleratorRequest')
    },
    accelerator_request.patch_arq: _ACCEPTED,
    accelerator_request.delete_arq: _NO_BODY,
    device.list_devices: _pages('devices', 'Device'),
    device.get_device: {200: schemas.component('Device')},
    device.disable_device: _NO_BODY,
    device.enable_device: _NO_BODY,
    deployable.list_deployables: _pages('deployables', 'Deployable'),
    deployable.get_deployable: _DEPLOYABLE,
    deployable.program_deployable: _DEPLOYABLE,
    deployable.program_deployable_again_named: _DEPLOYABLE,
    attribute.list_attributes: {
        200: schemas.list_of('attributes', schemas.component('Attribute'))
    },
    attribute.create_attribute: {201: schemas.component('Attribute')},
    attribute.get_attribute: {200: schemas.component('Attribute')},
    attribute.delete_attribute: _NO_BODY,
    fpga.program_fpga: {200: schemas.PROGRAMMED},
    topology.list_topology: _pages('topology', 'TopologyHost'),
    server.show_accelerators: {200: schemas.SERVER},
    server.set_profile: {200: schemas.SERVER},
    server.show_to_guest: {200: schemas.VENDORDATA},
    usage.show_usage: {200: schemas.USAGE},
    programming.list_programmings: _pages('programmings', 'Programming'),
    bitstream.prefetch: {202: schemas.HOSTNAMES},
    drain.list_drains: {
        200: schemas.list_of('drains', schemas.component('Drain'))
    },
    drain.get_drain: _DRAIN,
    drain.begin_drain: _DRAIN,
    drain.end_drain: _NO_BODY,
    host.report: {200: schemas.ORDERS, 204: None},
    host.set_cleaning: _NO_BODY,
    host.set_provisioning: _NO_BODY,
    host.set_programming: _NO_BODY,
    binding.list_bindings: {200: schemas.BINDINGS},
    binding.delete_unadopted: _NO_BODY,
    binding.get_binding: _BOUND_ARQS,
    binding.acquire: _BOUND_ARQS,
    binding.release: _NO_BODY,
    binding.adopt: _BOUND_ARQS,
    binding.add: _BOUND_ARQS,
    server.replace_failed: _NO_BODY,
}
