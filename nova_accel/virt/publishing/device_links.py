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

"""The links between the devices of this host.

A host without lines that have ``"pool": "link"``, and without a Fabric
Manager, looks at nothing.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
from typing import Protocol

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.host import pci_topology
from nova_accel.host import sysfs_tree
from nova_accel.model import link_sets
from nova_accel.model.devices import hardware
from nova_accel.model.devices import pci_path
from nova_accel.model.links import link_discovery
from nova_accel.model.links import linked_devices
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import link_memory

LOG = logging.getLogger(__name__)


class OfferedPartition(Protocol):
    """A partition as the fabric tells it."""

    @property
    def module_ids(self) -> frozenset[int]: ...

    @property
    def is_supported(self) -> bool: ...


#: The partitions that Fabric Manager offers now. It raises AcceleratorError if
#: that does not answer.
Partitions = Callable[[], Sequence[OfferedPartition]]


class DeviceLinks:
    """The links of one host, looked at with its devices.

    :param partitions: None without a Fabric Manager
    """

    def __init__(
        self,
        sysfs: sysfs_tree.Sysfs,
        memory: link_memory.LinkMemory,
        gpus: gpu_links.GpuLinks,
        partitions: Partitions | None = None,
    ) -> None:
        self._sysfs = sysfs
        self._memory = memory
        self._gpus = gpus
        self._partitions = partitions
        self._told: frozenset[str] = frozenset()
        # A partition that was offered keeps its place until a restart.
        self._offered: dict[frozenset[int], None] = {}

    def joined(self, found: discovery.Discovered) -> discovery.Discovered:
        """The devices with their sets, and the tree of these. Never raises."""
        linked = [device for device in found.devices if device.pooled_by_links]
        gpus = [
            device
            for device in found.devices
            if linked_devices.is_gpu_of_nvidia(device)
            and (device.pooled_by_links or self._partitions is not None)
        ]
        if not (linked or gpus):
            return found
        complaints: list[str] = []
        self._gpus.learn(gpus)
        pairs = self._gpus.pairs(gpus)
        result = linked_devices.joined(
            found.devices,
            linked_devices.LinkFacts(
                self._paths(linked, complaints),
                found.lines,
                self._gpus.module_ids(gpus)
                | gpu_links.of_lines(
                    gpus,
                    {
                        str(address): number
                        for line in found.lines.values()
                        for address, number in line.module_ids
                    },
                ),
                pairs.all,
                pairs.down,
                self._fabric() if gpus else None,
            ),
        )
        self._tell(
            result.devices, found.devices, (*complaints, *result.left_out)
        )
        return dataclasses.replace(
            found, devices=result.devices, links=result.tree
        )

    def _paths(
        self, devices: Iterable[hardware.Device], complaints: list[str]
    ) -> dict[str, pci_path.PciPath]:
        found = {}
        for device in devices:
            try:
                found[device.name] = pci_topology.path(
                    self._sysfs, device.address
                )
            except exceptions.DeviceError as error:
                complaints.append(
                    f'{error}; it is in no set of a switch or a root complex'
                )
        return found

    def _fabric(self) -> linked_devices.Fabric | None:
        """The offer of Fabric Manager, its last one if it is away.

        A partition that it no longer lists counts as not supported.
        """
        if self._partitions is None:
            return None
        known = self._memory.read()
        try:
            offered = {
                frozenset(each.module_ids): each.is_supported
                for each in self._partitions()
                if each.module_ids
                and all(
                    0 <= number <= link_sets.MAX_MODULE_ID
                    for number in each.module_ids
                )
            }
        except exceptions.AcceleratorError as error:
            return linked_devices.Fabric(
                known.partitions, f'Fabric Manager does not answer: {error}'
            )
        if not 0 < len(offered) <= link_discovery.MAX_PARTITIONS:
            return linked_devices.Fabric(
                known.partitions,
                f'Fabric Manager lists {len(offered)} partitions',
            )
        self._offered.update(dict.fromkeys(offered))
        self._memory.write(
            known._replace(
                partitions=tuple(
                    link_discovery.KnownPartition(numbers)
                    for numbers in sorted(offered, key=sorted)
                )
            )
        )
        return linked_devices.Fabric(
            tuple(
                link_discovery.KnownPartition(
                    numbers, offered.get(numbers, False)
                )
                for numbers in sorted(self._offered, key=sorted)
            )
        )

    def _tell(
        self,
        devices: Sequence[hardware.Device],
        before: Sequence[hardware.Device],
        complaints: Iterable[str],
    ) -> None:
        """Log what is wrong, once."""
        told = frozenset(complaints).union(
            f'{device.address}: {device.fault}'
            for device, was in zip(devices, before, strict=True)
            if device.fault != was.fault
        )
        for text in sorted(told - self._told):
            LOG.warning('Links of accelerators: %s', text)
        self._told = told
