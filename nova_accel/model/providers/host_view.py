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

"""A host's accelerators as all its parts see them at a moment."""

import collections
from collections.abc import Mapping
from collections.abc import Set
import dataclasses
import functools

from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.model import host_orders
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.providers import counted
from nova_accel.model.providers import provider_layout


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node, as its three neighbours name it.

    ``nodename`` is Nova's and Placement's name of the node and the wire's
    ``hostname``, ``uuid`` that of its root resource provider, ``service_host``
    the name of nova-compute in RPC.
    """

    nodename: str
    uuid: str
    service_host: str


@dataclasses.dataclass(frozen=True)
class View:
    """A finished, immutable look at the host's accelerators."""

    node_uuid: str = ''
    devices: tuple[hardware.Device, ...] = ()
    layout: provider_layout.Layout = dataclasses.field(
        default_factory=provider_layout.Layout
    )

    @functools.cached_property
    def drivers(self) -> Mapping[str, str]:
        """Attach handle uuid -> the name of the driver that plugs it."""
        return {
            handle.uuid: device.driver
            for device in self.devices
            for handle in device.handles
        }

    @functools.cached_property
    def handles(self) -> Mapping[str, attach_handle.AttachHandle]:
        """Attach handle uuid -> the handle."""
        return {
            handle.uuid: handle
            for device in self.devices
            for handle in device.handles
        }

    def beside(self, uuid: str) -> Mapping[str, attach_handle.AttachHandle]:
        """The handles of other devices that lead to the same thing.

        There are none unless they were given away while they did not tell.

        :param uuid: of an attach handle
        :returns: by their uuids
        """
        subsystem = self._subsystems.get(uuid)
        return {
            other: self.handles[other]
            for other, each in self._subsystems.items()
            if each == subsystem and other != uuid
        }

    @functools.cached_property
    def _subsystems(self) -> Mapping[str, str]:
        return {
            handle.uuid: device.subsystem
            for device in self.devices
            if device.subsystem is not None
            for handle in device.handles
        }

    @functools.cached_property
    def cleaned(self) -> frozenset[str]:
        """The uuids of the attach handles that are cleaned after a guest."""
        return frozenset(
            handle.uuid
            for device in self.devices
            for deployable in device.deployables
            if deployable.is_cleaned
            for handle in deployable.handles
        )

    @functools.cached_property
    def units(self) -> Mapping[str, int]:
        """Resource class -> the number of units that are there."""
        return collections.Counter(
            place.resource_class for place in self.layout.places.values()
        )

    def excluded(self, taken: Set[str]) -> frozenset[str]:
        """The uuids of the attach handles for which others leave no room.

        :param taken: the uuids of those that instances hold
        """
        return frozenset(
            uuid for device in self.devices for uuid in device.excluded(taken)
        )

    def unusable(self, orders: host_orders.Orders | None) -> frozenset[str]:
        """The uuids of the attach handles that no one must be given.

        :param orders: None as long as the host has none
        """
        if orders is None:
            return self.faulty
        return self.faulty.union(
            orders.uncleaned,
            (
                handle.uuid
                for uuid, device in self._by_uuid.items()
                if uuid in orders.disabled
                for handle in device.handles
            ),
        )

    @functools.cached_property
    def faulty(self) -> frozenset[str]:
        """The uuids of the attach handles that do not work."""
        return frozenset(
            handle.uuid
            for device in self.devices
            for deployable in device.deployables
            if device.fault is not None or deployable.fault is not None
            for handle in deployable.handles
        )

    @functools.cached_property
    def _by_uuid(self) -> Mapping[str, hardware.Device]:
        return {
            naming.derived_uuid(self.node_uuid, device.name): device
            for device in self.devices
        }

    @functools.cached_property
    def functions(self) -> frozenset[str]:
        """The addresses of the PCI functions that guests can get."""
        return frozenset(
            str(address)
            for handle in self.handles.values()
            for address in handle.functions
        )


@dataclasses.dataclass
class CurrentState:
    """The view and the orders of the moment.

    The publisher replaces each as a whole, and everybody else reads it.
    ``orders`` is None before the API's first answer. ``published`` are the
    orders that Placement has; None before that is known. ``unjournaled`` are
    the bindings of the API's last list that the journal lacked, adopted or
    not; None before the first list. ``uncounted`` are the units that instances
    hold and that Placement has not allocated to them; None before the first
    look. A part that sees a reason to compare the host soon sets
    ``is_doubtful``. All parts add to ``findings``, and the publisher reports
    them.
    """

    view: View
    orders: host_orders.Orders | None = None
    published: host_orders.Orders | None = None
    unjournaled: tuple[host_binding.Binding, ...] | None = None
    uncounted: counted.Units | None = None
    is_doubtful: bool = False
    findings: host_findings.Findings = dataclasses.field(
        default_factory=host_findings.Findings
    )
