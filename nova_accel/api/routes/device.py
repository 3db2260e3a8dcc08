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

"""``/devices``."""

from nova_accel.api.handlers import device
from nova_accel.api.http import paging
from nova_accel.api.http import route
from nova_accel.api.policies import device as policies

ROUTES: route.Table = {
    '/devices': {
        'GET': route.Route(
            device.list_devices,
            'List devices',
            policies.LIST,
            query={
                'type': route.Argument('As FPGA'),
                'vendor': route.Argument('PCI vendor id'),
                'hostname': route.Argument('Nodename'),
                **paging.ARGUMENTS,
            },
        ),
    },
    '/devices/{uuid}': {
        'GET': route.Route(device.get_device, 'Show a device', policies.SHOW),
    },
    '/devices/{uuid}/disable': {
        'POST': route.Route(
            device.disable_device,
            'Give a device to no more servers',
            policies.DISABLE,
        ),
    },
    '/devices/{uuid}/enable': {
        'POST': route.Route(
            device.enable_device,
            'Give a device to servers again',
            policies.ENABLE,
        ),
    },
}
