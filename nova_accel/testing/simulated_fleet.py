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


"""A simulated fleet of any size, with one finding of each kind if wanted.

It is what the sources say, without a database: the same for the same size.
"""

import datetime
import itertools
import random

from nova_accel.model import finding
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.units import unit_state

#: Product, resource class, units of a device, the name of its parts.
PRODUCTS = (
    ('NVIDIA H200', 'PGPU', 1, 'gpu'),
    ('NVIDIA L40S', 'VGPU', 8, 'vgpu'),
    ('AMD Alveo U250', 'FPGA', 3, 'region'),
    ('Intel QAT 4xxx', 'CUSTOM_QAT', 16, 'qat'),
    ('NVIDIA BlueField-3', 'CUSTOM_NIC', 8, 'vf'),
    ('Samsung PM9A3', 'CUSTOM_SSD', 1, 'nvme'),
)

DEVICES_OF_A_HOST = 8

_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'


class SimulatedFleet:
    """The sources of a simulated fleet.

    Servers of one to three units use most of it. Some hosts have something to
    look at: a fault, a failed cleaning, or they are silent. Others have
    drained devices.

    :ivar made: kind -> whose finding :meth:`disagree` has made
    """

    def __init__(self, devices: int = 2000) -> None:
        self._random = random.Random(devices)  # noqa: S311
        self.hosts: list[fleet_sources.FleetHost] = []
        self.devices: dict[str, fleet_sources.FleetDevice] = {}
        self.units: list[fleet_sources.FleetUnit] = []
        self.unheld: list[fleet_sources.FleetArq] = []
        self.servers: dict[str, fleet_sources.FleetServer] = {}
        self.passed_through: dict[tuple[str, str], str] = {}
        self.providers: list[fleet_sources.FleetProvider] = []
        self.allocations: dict[str, dict[str, dict[str, int]]] = {}
        self.findings: list[finding.Finding] = []
        self.made: dict[disagreement.Subject, str] = {}
        for number in range(0, devices, DEVICES_OF_A_HOST):
            self._add_host(
                number // DEVICES_OF_A_HOST,
                min(DEVICES_OF_A_HOST, devices - number),
            )

    @property
    def ours(self) -> fleet_sources.Ours:
        return fleet_sources.Ours(
            self.hosts,
            list(self.devices.values()),
            self.units,
            self.unheld,
            self.findings,
        )

    @property
    def nova(self) -> fleet_sources.NovaReading:
        return fleet_sources.NovaReading(
            self.servers, passed_through=self.passed_through
        )

    @property
    def placement(self) -> fleet_sources.Placement:
        return fleet_sources.Placement(self.providers, self.allocations)

    def disagree(self) -> None:
        """Have sources disagree in each way, each about another server."""
        for kind in disagreement.Subject:
            place = next(
                place
                for place in itertools.count(len(self.made) * 400 + 8)
                if self._is_plain(self.units[place])
            )
            self.made[kind] = self._make(kind, place)

    def find(self, is_repaired: bool = False) -> None:
        """Have hosts find something of each kind, each of another host.

        All of it is about a device, and about its server if it has one.
        """
        for number, kind in enumerate(finding.Kind, start=1):
            unit = self.units[-number * 40]
            device = self.devices[unit.device_uuid]
            self.findings.append(
                finding.Finding(
                    kind,
                    f'{kind.replace("_", " ")} of {device.address}',
                    is_repaired,
                    unit.arq and unit.arq.instance_uuid,
                    device.address,
                    device.hostname,
                    datetime.datetime(2026, 11, 23, 1, tzinfo=datetime.UTC),
                )
            )

    def _uuid(self, *parts: object) -> str:
        return naming.derived_uuid(_NAMESPACE, *map(str, parts))

    def _add_host(self, number: int, devices: int) -> None:
        name = f'cmp-{number // 16:02d}-{number % 16:02d}.example'
        host = fleet_sources.FleetHost(
            name, f'{name}.service', number % 80 == 79
        )
        self.hosts.append(host)
        root = fleet_sources.FleetProvider(
            self._uuid(name), f'{name}_accel', None
        )
        self.providers.append(root)
        units: list[fleet_sources.FleetUnit] = []
        for slot in range(devices):
            units += self._add_device(number, slot, root)
        self.units += self._boot(host, units)

    def _add_device(
        self, host: int, slot: int, root: fleet_sources.FleetProvider
    ) -> list[fleet_sources.FleetUnit]:
        """:returns: its units, which no server has yet"""
        product, resource_class, amount, part = PRODUCTS[host % len(PRODUCTS)]
        bus = f'0000:{16 + 8 * slot:02x}'
        hostname = self.hosts[host].name
        is_drained = slot > 5 and host % 40 == 7
        device = fleet_sources.FleetDevice(
            self._uuid(hostname, bus),
            hostname,
            f'pci_0000_{16 + 8 * slot:02x}_00_0',
            f'{bus}:00.0',
            product,
            slot // 4,
            (
                hardware.Status.MAINTAINING
                if is_drained
                else hardware.Status.ENABLED
            ),
            'it does not answer' if not slot and host % 40 == 12 else None,
            (f'numa_{slot // 4} numa=2-4',),
        )
        self.devices[device.uuid] = device
        provider = fleet_sources.FleetProvider(
            self._uuid(device.uuid, 'provider'),
            f'{hostname}_accel_{device.name}',
            root.uuid,
        )
        self.providers.append(provider)
        self.allocations[provider.uuid] = {}
        is_clean = slot != 1 or host % 80 != 35
        condition = unit_state.Condition(
            True,
            device.status,
            device.fault,
            is_clean,
            None if is_clean else 'it refuses',
        )
        return [
            fleet_sources.FleetUnit(
                self._uuid(device.uuid, number),
                device.uuid,
                f'{part}{number:02d}',
                resource_class,
                provider.uuid,
                f'{bus}:{(number + 1) // 8:02x}.{(number + 1) % 8}',
                condition,
                None,
            )
            for number in range(amount)
        ]

    def _boot(
        self,
        host: fleet_sources.FleetHost,
        units: list[fleet_sources.FleetUnit],
    ) -> list[fleet_sources.FleetUnit]:
        """The units, of which servers have most."""
        booted: list[fleet_sources.FleetUnit] = []
        while units:
            amount = self._random.randint(1, 3)
            some, units = units[:amount], units[amount:]
            if self._random.random() < 0.7 and not any(
                unit.condition.reason() for unit in some
            ):
                some = self._server(host, some)
            booted += some
        return booted

    def _server(
        self,
        host: fleet_sources.FleetHost,
        units: list[fleet_sources.FleetUnit],
    ) -> list[fleet_sources.FleetUnit]:
        uuid = self._uuid('server', len(self.servers))
        self.servers[uuid] = fleet_sources.FleetServer(
            host.service_host,
            'active',
            name=f'train-{len(self.servers):04d}',
            flavor=f'accel.{len(units)}',
            image=self._uuid('image'),
        )
        for unit in units:
            held = self.allocations[unit.rp_uuid].setdefault(uuid, {})
            held[unit.resource_class] = held.get(unit.resource_class, 0) + 1
        return [
            unit._replace(
                arq=fleet_sources.FleetArq(
                    self._uuid('arq', unit.uuid),
                    'Bound',
                    'active',
                    host.name,
                    uuid,
                    unit.resource_class,
                )
            )
            for unit in units
        ]

    def _is_plain(self, unit: fleet_sources.FleetUnit) -> bool:
        """Whether a server has it, and its host is well."""
        hostname = self.devices[unit.device_uuid].hostname
        return unit.arq is not None and all(
            host.name != hostname or not host.is_silent for host in self.hosts
        )

    def _make(self, kind: disagreement.Subject, place: int) -> str:
        """:returns: whose finding it is"""
        unit = self.units[place]
        arq = unit.arq
        assert arq is not None
        uuid = arq.instance_uuid
        assert uuid is not None
        match kind:
            case disagreement.Subject.LEAK:
                del self.servers[uuid]
            case disagreement.Subject.ELSEWHERE:
                self.servers[uuid] = fleet_sources.FleetServer(
                    self.hosts[-1].service_host, 'active', name='moved'
                )
            case disagreement.Subject.MISSING:
                self.units[place] = unit._replace(arq=None)
                self.unheld.append(arq)
            case disagreement.Subject.GONE:
                self.units[place] = unit._replace(
                    condition=unit_state.Condition(is_present=False)
                )
            case disagreement.Subject.UNCOUNTED:
                del self.allocations[unit.rp_uuid][uuid]
            case disagreement.Subject.OVERCOUNTED:
                self.allocations[unit.rp_uuid][uuid][unit.resource_class] += 1
            case disagreement.Subject.NOBODYS:
                uuid = self._uuid('nobody')
                self.providers.append(
                    fleet_sources.FleetProvider(uuid, 'gone_accel_pci', None)
                )
            case disagreement.Subject.DOUBLE:
                uuid = self._uuid('passed through')
                self.passed_through[
                    self.devices[unit.device_uuid].hostname, unit.address
                ] = uuid
        return uuid
