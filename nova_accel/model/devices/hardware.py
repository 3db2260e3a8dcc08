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

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
import enum
from typing import Any

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import programmable

#: How many characters of an attribute's value are reported to the API.
MAX_ATTRIBUTE_LENGTH = 255


class Status(enum.StrEnum):
    """The state that an administrator wants of a device, in Cyborg's words."""

    ENABLED = 'enabled'
    #: Disabled: no new guest gets any part of it.
    MAINTAINING = 'maintaining'


@dataclasses.dataclass(frozen=True)
class Deployable:
    """A part of a device that is handed out in interchangeable units.

    ``name`` is unique within the device. ``traits`` repeat the device's own,
    because one provider serves a whole numbered request group. Each handle is
    one unit of ``resource_class``. ``is_cleaned`` says that its driver cleans
    a unit after each guest, before another gets it. ``region`` is the name of
    its FPGA region, None without a programmable region. ``bitstream_id`` is
    the uuid of the image in Glance that the region holds, None if that is not
    known. ``fault`` is why no guest can have any of it at the moment, None if
    guests can.
    """

    name: str
    resource_class: str
    traits: frozenset[str]
    handles: tuple[attach_handle.AttachHandle, ...]
    is_cleaned: bool = False
    region: str | None = None
    bitstream_id: str | None = None
    fault: str | None = None

    def without(self, uuids: Set[str]) -> 'Deployable':
        """The deployable without some of its units.

        :param uuids: of attach handles
        """
        return dataclasses.replace(
            self,
            handles=tuple(
                handle for handle in self.handles if handle.uuid not in uuids
            ),
        )


@dataclasses.dataclass(frozen=True)
class Device:
    """One piece of hardware, with the parts that guests can get.

    ``name`` is libvirt's name of its node device, ``type`` one of
    :data:`nova_accel.model.naming.RESOURCE_CLASSES`, ``driver`` the entry
    point name of the driver that found it. ``vendor_id`` and ``product_id``
    are four lower-case hexadecimal digits. ``pooled`` says that the device is
    interchangeable with others of its kind, told apart only by
    ``operator_traits`` and, with ``pooled_by_numa_node``, by the NUMA node.
    ``fault`` is why no guest can have any of it at the moment, None if it is
    healthy; a faulty device is published as reserved. ``attributes`` are for
    people to read: firmware, memory, link. ``regions`` are its programmable
    parts. ``shell`` is its static part, None if no shell can be loaded.
    ``subsystem`` names what other functions may lead to as well, such as a
    drive with two ports; one device of each is offered. It is None if there is
    no such thing, or while the device does not tell it.

    ``pooled_by_links`` says that its provider is below those of the sets of
    joined devices. ``link_sets`` are these sets, the largest first, as
    :mod:`nova_accel.model.link_places` writes them. ``module_id`` is its
    number on an NVSwitch board, None without one. The core sets the last two.
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
    pooled_by_numa_node: bool = False
    operator_traits: frozenset[str] = frozenset()
    fault: str | None = None
    attributes: Mapping[str, str] = dataclasses.field(
        default_factory=dict, hash=False
    )
    regions: tuple[programmable.Region, ...] = ()
    shell: programmable.Region | None = None
    subsystem: str | None = None
    pooled_by_links: bool = False
    link_sets: tuple[str, ...] = ()
    module_id: int | None = None

    @property
    def addresses(self) -> frozenset[pci_address.PciAddress]:
        """The PCI functions that the device is made of."""
        return frozenset(
            {self.address}.union(
                *(
                    (handle.address, *handle.functions)
                    for handle in self.handles
                )
            )
        )

    @property
    def handles(self) -> Iterator[attach_handle.AttachHandle]:
        """All units that guests can get of it."""
        return (
            handle
            for deployable in self.deployables
            for handle in deployable.handles
        )

    @property
    def is_shared(self) -> bool:
        """Whether its units exclude each other: a card of many shapes."""
        return any(handle.slice is not None for handle in self.handles)

    def excluded(self, taken: Set[str]) -> Iterator[str]:
        """The units for which others leave no room.

        :param taken: the uuids of the attach handles that are taken
        :returns: the uuids of others
        """
        slices = {
            handle.uuid: handle.slice
            for handle in self.handles
            if handle.slice is not None
        }
        here = [slices[uuid] for uuid in taken & slices.keys()]
        for uuid, mine in slices.items():
            if uuid not in taken and any(map(mine.excludes, here)):
                yield uuid

    def without(self, uuids: Set[str]) -> 'Device':
        """The device without some of its units.

        A deployable that has lost all of them is no part of it any more.

        :param uuids: of attach handles
        """
        return dataclasses.replace(
            self,
            deployables=tuple(
                each
                for before in self.deployables
                if (each := before.without(uuids)).handles
                or not before.handles
            ),
        )

    def place(self, region: programmable.Region) -> str:
        """The name of a region or the shell of it, for administrators."""
        return f'{region.name} of {self.address}'

    def to_report(
        self, node_uuid: str, rp_uuids: Mapping[tuple[str, str], str]
    ) -> dict[str, Any]:
        """This device in the host's report to the API, as plain JSON.

        :param node_uuid: the uuid of the compute node
        :param rp_uuids: (device name, deployable name) -> provider uuid
        """
        return {
            'uuid': naming.derived_uuid(node_uuid, self.name),
            'name': self.name,
            'type': self.type,
            'vendor_id': self.vendor_id,
            'product_id': self.product_id,
            'vendor': self.vendor,
            'product': self.product,
            'address': str(self.address),
            'driver': self.driver,
            'numa_node': self.numa_node,
            'fault': None
            if self.fault is None
            else reason.sanitize(self.fault),
            'attributes': {
                name: reason.sanitize(text, MAX_ATTRIBUTE_LENGTH)
                for name, text in self.attributes.items()
            },
            'link_sets': list(self.link_sets),
            'deployables': [
                {
                    'uuid': deployable_uuid(
                        node_uuid, self.name, deployable.name
                    ),
                    'name': deployable.name,
                    'rp_uuid': rp_uuids[self.name, deployable.name],
                    'resource_class': deployable.resource_class,
                    'traits': sorted(deployable.traits),
                    'is_cleaned': deployable.is_cleaned,
                    'region': deployable.region,
                    'bitstream_id': deployable.bitstream_id,
                    'attach_handles': [
                        handle.to_dict() for handle in deployable.handles
                    ],
                }
                for deployable in self.deployables
            ],
        }


def deployable_uuid(node_uuid: str, device_name: str, name: str) -> str:
    """The uuid of a deployable, by the names of it and of its device."""
    return naming.derived_uuid(node_uuid, device_name, 'deployable', name)


def check_derived(
    hostname: str, node_uuid: str, devices: Iterable[Mapping[str, Any]]
) -> None:
    """Check that the uuids of reported devices are of their compute node.

    So no host takes the uuid of a device that another host has, or will have.

    :param node_uuid: the uuid of the compute node that reports
    :param devices: in the form of :meth:`Device.to_report`
    :raises Conflict: names a device, or a deployable of it
    """
    for device in devices:
        name = device['name']
        derived = [(device['uuid'], naming.derived_uuid(node_uuid, name))] + [
            (
                deployable['uuid'],
                deployable_uuid(node_uuid, name, deployable['name']),
            )
            for deployable in device['deployables']
        ]
        for uuid, own in derived:
            if uuid != own:
                raise exceptions.Conflict(
                    f'{uuid} of device {name} is not derived from compute '
                    f'node {node_uuid}: host {hostname} may only report '
                    'devices of its own'
                )
