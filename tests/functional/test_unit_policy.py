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

"""The policy of units through Nova's own SchedulerManager and Placement."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import datetime
import json
import random

import fixtures
from nova import exception
from oslo_utils import uuidutils
import testtools

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_choice
from nova_accel.scheduler import our_group
from nova_accel.testing import scheduling
from rig.loopback import bare_scheduler
from rig.loopback import crowd

_HOSTS = 12
_LOAD = 0.7
_GROUP = 'device_profile_0'


class UnitPolicyTestCase(testtools.TestCase):
    """Hosts with a pool each, in Placement and as nova-scheduler knows them.

    A host takes the units as a binding does.
    """

    resource_class: str
    units_of_host: int

    def setUp(self):
        super().setUp()
        # Placement logs each claim that is lost.
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(crowd.PlacementWorkers(1))
        self.placement = self.useFixture(scheduling.Placement())
        self.chance = random.Random(1)
        self.known = known_units.KnownUnits()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current', lambda: self.known
            )
        )
        self.servers = {}
        self.used = 0
        self.hosts = {}
        self.pools = {}
        self.units = {}
        for number in range(_HOSTS):
            self._add_host(f'host{number}')
        self._tell()
        self.scheduler = bare_scheduler.BareScheduler(self.hosts)

    def _add_host(self, name):
        self.hosts[name] = self.placement.add_provider(
            name, {'VCPU': 1000, 'MEMORY_MB': 1_000_000}
        )
        rp_uuid = self.pools[name] = self.placement.add_provider(
            f'{name}_accel',
            {self.resource_class: self.units_of_host},
            self.hosts[name],
            [naming.OWNERSHIP_TRAIT],
        )
        for number in range(self.units_of_host):
            uuid = f'{name}-{number}'
            self.units[uuid] = unit_changes.ChangedDeployable(
                hostname=name,
                uuid=uuid,
                rp_uuid=rp_uuid,
                resource_class=self.resource_class,
                traits=frozenset(),
                device_uuid=f'device {uuid}',
                numa_node=number * 2 // self.units_of_host,
                region=None,
                bitstream_id=None,
                total=1,
                free=1,
            )

    def _tell(self):
        self.known.apply(
            unit_changes.Changes(
                datetime.datetime.now(datetime.UTC),
                True,
                {
                    name: [
                        unit
                        for unit in self.units.values()
                        if unit.hostname == name
                    ]
                    for name in self.hosts
                },
            ),
            0.0,
        )

    def costs(self, group):
        """Host -> the cost of its pool, if it has room."""
        costs = {}
        for name, rp_uuid in self.pools.items():
            choice = unit_choice.choose(
                group,
                [
                    unit.units()
                    for unit in self.units.values()
                    if unit.rp_uuid == rp_uuid
                ],
            )
            if choice is not None:
                costs[name] = choice.cost
        return costs

    def boot(self, group):
        """A server.

        :returns: the best cost and the one of the chosen host, None if no
            host has room
        """
        [amount] = group.resources.values()
        while self.used + amount > _LOAD * len(self.units):
            self._end(self.chance.choice(sorted(self.servers)))
        costs = self.costs(group)
        server = uuidutils.generate_uuid()
        try:
            host = self._scheduled(server, group)
        except exception.NoValidHost:
            self.assertEqual({}, costs)
            return None
        self._bind(server, host, group)
        return min(costs.values()), costs[host]

    def _scheduled(self, server, group):
        spec = scheduling.request_spec(groups=[our_group.make(_GROUP, group)])
        [[selected]] = self.scheduler.select(
            spec, bare_scheduler.Answer(spec), [server]
        )
        request = json.loads(selected.allocation_request)
        self.assertEqual(
            [self.pools[selected.nodename]], request['mappings'][_GROUP]
        )
        return selected.nodename

    def _bind(self, server, host, group):
        choice = unit_choice.choose(
            group,
            [
                unit.units()
                for unit in self.units.values()
                if unit.hostname == host
            ],
        )
        bitstream_id = group.properties.get('bitstream_id')
        for uuid in choice.units:
            self.units[uuid] = self.units[uuid]._replace(
                free=0, bitstream_id=bitstream_id
            )
        self.servers[server] = tuple(choice.units)
        self.used += len(choice.units)
        self._tell()

    def _end(self, server):
        self.placement.client.delete(f'/allocations/{server}', version='1.36')
        for uuid in self.servers[server]:
            self.units[uuid] = self.units[uuid]._replace(free=1)
        self.used -= len(self.servers.pop(server))
        self._tell()


class TestFpga(UnitPolicyTestCase):
    resource_class = 'FPGA'
    units_of_host = 4

    def test_each_boot_with_a_match_gets_it(self):
        groups = [
            device_profile.Group(
                {'FPGA': 1},
                properties={'bitstream_id': uuidutils.generate_uuid()},
            )
            for _number in range(6)
        ]
        weights = [1 / rank for rank in range(1, len(groups) + 1)]
        ready = 0
        for _boot in range(120):
            [group] = self.chance.choices(groups, weights)
            best, found = self.boot(group)
            self.assertEqual(best, found)
            ready += not found.programmed
        # By chance there would be 20.
        self.assertGreater(ready, 60)


class TestGpu(UnitPolicyTestCase):
    resource_class = 'PGPU'
    units_of_host = 8

    def test_no_larger_set_is_broken_than_needed(self):
        groups = {
            size: device_profile.Group({'PGPU': size}) for size in (1, 2, 4, 8)
        }
        for _boot in range(120):
            [size] = self.chance.choices(list(groups), [50, 20, 20, 10])
            found = self.boot(groups[size])
            self.assertIsNotNone(found, size)
            best, cost = found
            self.assertEqual(best, cost)
