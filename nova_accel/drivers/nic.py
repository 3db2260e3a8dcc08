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

"""Functions of network cards, also for the ports of servers."""

from collections.abc import Mapping

from nova_accel import exceptions
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware


class NicDriver(pci_kind.PciKindDriver):
    """A virtual function, or a card without any, and its physical network.

    Neutron binds a port to a function by its physical network, so the line
    must have one. ``uplink`` is the interface of a virtual function's card.
    """

    kind = 'NIC'

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        if spec.physical_network is None:
            raise exceptions.DeviceError(
                'the line must have the "physical_network" that it is in'
            )
        return super().discover(function, spec, host)

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        # The function's own interface disappears when a guest gets it.
        if function.parent_address is None:
            return {}
        interfaces = self._sysfs.optional.names(function.parent_address, 'net')
        return {'uplink': ', '.join(interfaces)} if interfaces else {}
