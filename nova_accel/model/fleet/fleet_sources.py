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


"""The words of the sources about the whole fleet.

The sources are the database of accelerators, Nova's databases, and Placement.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model.fleet import host_drain
from nova_accel.model.units import unit_state


class FleetHost(NamedTuple):
    """A host that has reported.

    ``name`` is Nova's name of the hypervisor, ``service_host`` its name in
    Nova's RPC. A silent host has not reported for long. ``drain`` is None if
    it is not drained.
    """

    name: str
    service_host: str
    is_silent: bool
    drain: host_drain.HostDrain | None = None

    @property
    def is_away(self) -> bool:
        """Whether it is silent as wanted: drained, and not overdue."""
        return (
            self.is_silent
            and self.drain is not None
            and not self.drain.is_overdue
        )


class FleetDevice(NamedTuple):
    """A card. ``name`` is libvirt's, ``status`` what an administrator wants.

    ``address`` is a PCI address in sysfs' form, as in :class:`FleetUnit`.
    ``link_sets`` are the sets of joined devices that it is in, the largest
    first, see :mod:`nova_accel.model.link_places`.
    """

    uuid: str
    hostname: str
    name: str
    address: str
    product: str
    numa_node: int | None
    status: str
    fault: str | None
    link_sets: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[str, str]:
        """Its host and its PCI address."""
        return self.hostname, self.address


class FleetArq(NamedTuple):
    """An ARQ that is bound, or that holds a unit.

    ``hostname`` and ``instance_uuid`` are None if it is bound to nothing.
    ``project_id`` is the owner's, None if no one has said it.
    """

    uuid: str
    state: str
    role: str | None
    hostname: str | None
    instance_uuid: str | None
    resource_class: str
    project_id: str | None = None

    @property
    def is_holding(self) -> bool:
        """Whether its state says that it has a unit."""
        return self.state in host_binding.HOLDING

    @property
    def typed_role(self) -> arq_types.Role | None:
        return None if self.role is None else arq_types.Role(self.role)


class FleetUnit(NamedTuple):
    """A part of a device that one guest can get, and the ARQ that has it.

    ``part`` is its FPGA region, or its deployable. ``address`` is its PCI
    function, or the parent of its mediated device.
    """

    uuid: str
    device_uuid: str
    part: str
    resource_class: str
    rp_uuid: str
    address: str
    condition: unit_state.Condition
    arq: FleetArq | None


@dataclasses.dataclass(frozen=True)
class FleetServer(nova_server.Server):
    """A server, with what people call it.

    ``image`` is a uuid, empty for a server that boots from a volume.
    """

    name: str = ''
    flavor: str = ''
    image: str = ''

    @property
    def is_settled(self) -> bool:
        """Whether Nova neither runs an operation on it nor moves it."""
        return not (self.is_busy or self.is_migrating)


class Ours(NamedTuple):
    """The database of accelerators.

    ``unheld`` are the ARQs that are bound to a host and have no unit.
    """

    hosts: Sequence[FleetHost]
    devices: Sequence[FleetDevice]
    units: Sequence[FleetUnit]
    unheld: Sequence[FleetArq]
    findings: Sequence[finding.Finding] = ()

    @property
    def instance_uuids(self) -> set[str]:
        """The servers of all ARQs."""
        arqs = [*(unit.arq for unit in self.units), *self.unheld]
        return {
            arq.instance_uuid
            for arq in arqs
            if arq is not None and arq.instance_uuid is not None
        }


class NovaReading(NamedTuple):
    """Nova's databases.

    ``servers`` are the existing ones that were asked for. ``consumers`` are
    uuids that Nova knows and that are none of them: unfinished migrations, and
    servers that are in no cell yet. ``passed_through`` has (hypervisor, PCI
    address) -> instance uuid for each function that Nova's own PCI tracker
    has given to a server.
    """

    servers: Mapping[str, FleetServer]
    consumers: Collection[str] = ()
    passed_through: Mapping[tuple[str, str], str] = {}


class FleetProvider(NamedTuple):
    """A resource provider that has our trait."""

    uuid: str
    name: str
    parent_uuid: str | None


class Placement(NamedTuple):
    """Our providers, and who has allocations of them.

    ``allocations`` has provider uuid -> consumer -> class -> amount, for each
    provider that was asked.
    """

    providers: Sequence[FleetProvider]
    allocations: Mapping[str, Mapping[str, Mapping[str, int]]]

    @property
    def consumers(self) -> set[str]:
        return {
            consumer for held in self.allocations.values() for consumer in held
        }
