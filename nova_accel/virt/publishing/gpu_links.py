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

"""The module ids and NVLinks of GPUs, learnt while they can be.

``nvidia-smi`` is asked if NVIDIA's driver has a GPU of which nothing is known,
and once an hour as long as it has any. A guest's GPU keeps what was known of
it before.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.host import nvidia_smi
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.links import nvlink_peers
from nova_accel.virt.publishing import link_memory

LOG = logging.getLogger(__name__)

#: How long it takes until GPUs are asked again, to notice links that fail.
LOOK_AGAIN_S = 3600

#: How long it takes until it is asked again for a GPU that it did not tell.
TRY_AGAIN_S = 600

_DRIVER = 'nvidia'


class GpuLinks:
    """All that is known of the GPUs of one host.

    :param ask: tells those of some GPUs that answer
    """

    def __init__(
        self,
        sysfs: sysfs_tree.Sysfs,
        memory: link_memory.LinkMemory,
        ask: Callable[
            [Collection[pci_address.PciAddress]], Sequence[nvidia_smi.Gpu]
        ] = nvidia_smi.gpus,
    ) -> None:
        self._sysfs = sysfs
        self._memory = memory
        self._ask = ask
        self._asked_at = float('-inf')
        # The addresses and serial numbers of the GPUs that were not known when
        # it was asked last.
        self._asked_for: set[tuple[str, str | None]] = set()

    def learn(self, devices: Iterable[hardware.Device]) -> None:
        """Ask what can be asked now. Does not raise.

        :param devices: GPUs of NVIDIA
        """
        asked = {
            device.address: identity(device)
            for device in devices
            if self._has_driver(device)
        }
        here = {str(address): serial for address, serial in asked.items()}
        if not here:
            return
        known = self._memory.read()
        unknown = {
            (address, serial)
            for address, serial in here.items()
            if address not in known.gpus
            or attach_handle.is_another(known.gpus[address].identity, serial)
        }
        since_s = time.monotonic() - self._asked_at
        if unknown <= self._asked_for and since_s < (
            TRY_AGAIN_S if unknown else LOOK_AGAIN_S
        ):
            return
        self._asked_at = time.monotonic()
        self._asked_for = unknown
        try:
            told = {str(gpu.address): gpu for gpu in self._ask(asked.keys())}
        except exceptions.DeviceError as error:
            LOG.warning('The NVLinks of the GPUs are not learnt: %s', error)
            return
        gpus = dict(known.gpus)
        for address in here.keys() & told.keys():
            gpu, was = told[address], known.gpus.get(address)
            if was is not None and attach_handle.is_another(
                was.identity, here[address]
            ):
                was = None
            gpus[address] = link_memory.KnownGpu(
                here[address],
                gpu.module_id,
                gpu.has_fabric,
                nvlink_peers.now(
                    frozenset(map(str, gpu.peers)),
                    told.keys(),
                    was.peers if was is not None else nvlink_peers.Peers(),
                ),
            )
        self._memory.write(known._replace(gpus=gpus))

    def _has_driver(self, device: hardware.Device) -> bool:
        try:
            return self._sysfs.link(device.address, 'driver') == _DRIVER
        except exceptions.DeviceError:
            return False

    def module_ids(
        self, devices: Iterable[hardware.Device]
    ) -> dict[str, int | None]:
        """Device -> its module id, None if it is on no NVSwitch board.

        A device of which nothing is known is left out.
        """
        found: dict[str, int | None] = {}
        for device in devices:
            gpu = self._known(device)
            if gpu is not None and not gpu.has_fabric:
                found[device.name] = None
            elif gpu is not None and gpu.module_id is not None:
                found[device.name] = gpu.module_id
        return found

    def pairs(
        self, devices: Collection[hardware.Device]
    ) -> nvlink_peers.Pairs:
        """The pairs of these devices that are joined directly, by name."""
        names = {str(device.address): device.name for device in devices}
        return nvlink_peers.pairs(
            {
                device.name: nvlink_peers.Peers(
                    *(
                        frozenset(
                            names[address] for address in some & names.keys()
                        )
                        for some in gpu.peers
                    )
                )
                for device in devices
                if (gpu := self._known(device)) is not None
            }
        )

    def _known(self, device: hardware.Device) -> link_memory.KnownGpu | None:
        gpu = self._memory.read().gpus.get(str(device.address))
        if gpu is None or attach_handle.is_another(
            gpu.identity, identity(device)
        ):
            return None
        return gpu


def identity(device: hardware.Device) -> str | None:
    """The serial number of a device's card, None if it does not say."""
    return next(
        (handle.identity for handle in device.handles if handle.identity), None
    )


def of_lines(
    devices: Iterable[hardware.Device],
    module_ids: Mapping[str, int | None],
) -> dict[str, int | None]:
    """Device -> the module id that an operator's line gives to its address."""
    return {
        device.name: module_ids[str(device.address)]
        for device in devices
        if str(device.address) in module_ids
    }
