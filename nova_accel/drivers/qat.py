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

"""Intel QuickAssist: offload of encryption and compression."""

from collections.abc import Mapping
import dataclasses
import functools
import re
import time

from nova_accel import privileged
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.privileged import qat as privileged_qat

#: How many seconds a card's answer counts for all of its virtual functions.
_HEARTBEAT_S = 30


class QatDriver(pci_kind.PciKindDriver):
    """A virtual function, or a card without any.

    The kernel's ``Documentation/ABI/testing/sysfs-driver-qat`` describes
    ``qat/state`` and ``qat/cfg_services``. Cards of the 4xxx series and later
    have them; the services of other cards are unknown. A card's services
    (``sym;asym``, ``dc``) are also those of its virtual functions. So each
    service is a trait ``CUSTOM_QAT_SERVICE_<SERVICE>``, and functions with
    different services do not share a pool.
    """

    kind = 'QAT'
    vendors = {'8086': 'Intel'}

    def discover(
        self,
        function: pci_function.PciFunction,
        spec: device_spec.DeviceSpec,
        host: libvirt_devices.HostDevices,
    ) -> hardware.Device | None:
        result = super().discover(function, spec, host)
        if result is None:
            return None
        services = re.findall(
            '[a-z0-9]+', result.attributes.get('services', '')
        )
        traits = {
            naming.custom_trait('QAT', 'SERVICE', service)
            for service in services
        }
        return dataclasses.replace(
            result,
            operator_traits=result.operator_traits | traits,
            deployables=tuple(
                dataclasses.replace(each, traits=each.traits | traits)
                for each in result.deployables
            ),
        )

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        services = self._of_card(function, 'cfg_services')
        return {'services': services} if services else {}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        state = self._of_card(function, 'state')
        if state == 'down':
            return 'its card is stopped: qat/state is "down"'
        # The kernels that tell the heartbeat have a state, too.
        if state is not None and (
            _heartbeat(function.card, time.monotonic() // _HEARTBEAT_S) == '-1'
        ):
            return f'its card {function.card} does not answer its heartbeat'
        return None

    def _of_card(
        self, function: pci_function.PciFunction, name: str
    ) -> str | None:
        return self._sysfs.optional.read(
            function.parent_address or function.address, f'qat/{name}'
        )


@functools.lru_cache(maxsize=64)
def _heartbeat(card: pci_address.PciAddress, _moment: float) -> str | None:
    """The answer of :func:`privileged_qat.heartbeat`, None if it fails."""
    try:
        return privileged_qat.heartbeat(str(card))
    except privileged.ERRORS as error:
        sysfs_tree.note(card, f'its heartbeat cannot be read: {error}')
        return None
