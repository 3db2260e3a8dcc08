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


"""A device driver for simulated FPGA cards, entry point ``fake``."""

import uuid

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.host import node_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import device_spec
from nova_accel.model import naming

_REGION_TYPES = uuid.UUID('6b0b1f0e-5c0e-4d5b-9c8e-2f4b7a1d9e30')


def region_type_uuid(product_id: str, index: int) -> str:
    """The type of a card's N-th region, the same for all cards of a kind."""
    return str(uuid.uuid5(_REGION_TYPES, f'{product_id}/{index}'))


class FakeFpgaDriver(base.Driver):
    """A card whose virtual functions are its partial reconfiguration regions.

    Each region is a deployable of its own, told apart by its region trait.
    """

    def discover(self, function: pci_function.PciFunction,
                 spec: device_spec.DeviceSpec,
                 host: node_devices.HostDevices) -> device.Device:
        if not function.virtual_functions:
            raise exceptions.DeviceError(
                'it has no virtual functions, which are its regions')
        known = facts.of(function, spec)
        deployables = []
        for index, address in enumerate(function.virtual_functions):
            handle = attach_handle.AttachHandle(
                naming.derived_uuid(
                    self._node_uuid, function.name, f'region{index}'),
                address)
            deployables.append(known.deployable(
                f'region{index}', [handle], naming.region_trait(
                    known.type, known.vendor,
                    region_type_uuid(function.product_id, index))))
        return known.device(deployables)
