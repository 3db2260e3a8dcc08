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

"""Devices of a host as their drivers find them: facts, no opinions."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address


@dataclasses.dataclass(frozen=True)
class Deployable:
    """A part of a device that is handed out in interchangeable units.

    ``name`` is unique within the device. ``traits`` repeat those of the
    device, because a numbered request group is served by one provider.
    One handle is one unit of ``resource_class``.
    """

    name: str
    resource_class: str
    traits: frozenset[str]
    handles: tuple[attach_handle.AttachHandle, ...]


@dataclasses.dataclass(frozen=True)
class Device:
    """One piece of hardware, with what can be handed out of it.

    ``name`` is libvirt's name of its node device, ``type`` one of
    :data:`nova_accel.model.naming.RESOURCE_CLASSES`, ``driver`` the entry
    point name of the driver that found it. ``vendor_id`` and ``product_id``
    are four lower-case hexadecimal digits. ``pooled`` says that the device
    is interchangeable with others of its kind on the same NUMA node, told
    apart only by ``operator_traits``.
    """

    name: str
    type: str
    vendor_id: str
    product_id: str
    vendor: str
    product: str
    address: pci_address.PciAddress
    driver: str
    deployables: tuple[Deployable, ...]
    numa_node: int | None = None
    pooled: bool = False
    operator_traits: frozenset[str] = frozenset()

    def to_report(self, node_uuid: str,
                  rp_uuids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
        """This device in the host's report to the API, as plain JSON.

        :param node_uuid: the uuid of the compute node
        :param rp_uuids: (device name, deployable name) -> provider uuid
        """
        return {
            'uuid': naming.derived_uuid(node_uuid, self.name),
            'name': self.name, 'type': self.type,
            'vendor_id': self.vendor_id, 'product_id': self.product_id,
            'vendor': self.vendor, 'product': self.product,
            'address': str(self.address), 'driver': self.driver,
            'numa_node': self.numa_node,
            'deployables': [{
                'uuid': naming.derived_uuid(
                    node_uuid, self.name, 'deployable', deployable.name),
                'name': deployable.name,
                'rp_uuid': rp_uuids[self.name, deployable.name],
                'resource_class': deployable.resource_class,
                'traits': sorted(deployable.traits),
                'attach_handles': [
                    handle.to_dict() for handle in deployable.handles],
            } for deployable in self.deployables]}
