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


import dataclasses
from typing import Any

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel.model import finding
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_comparison
from nova_accel.model.fleet import fleet_sources
from nova_accel.testing import simulated_fleet

Kind = disagreement.Subject


class ComparisonTestCase(testtools.TestCase):
    """A host whose devices have a provider each."""

    def setUp(self) -> None:
        super().setUp()
        self.fleet = simulated_fleet.SimulatedFleet(16)
        self.consumers: set[str] = set()
        # The server that has the first unit of all that are used.
        self.place = next(
            place
            for place, unit in enumerate(self.fleet.units)
            if unit.arq is not None
        )
        self.unit = self.fleet.units[self.place]
        assert self.unit.arq is not None
        self.arq = self.unit.arq
        self.uuid = self.arq.instance_uuid or ''
        self.server = self.fleet.servers[self.uuid]
        self.mine = [
            unit
            for unit in self.fleet.units
            if unit.arq is not None and unit.arq.instance_uuid == self.uuid
        ]

    def find(self) -> list[finding.Finding]:
        return fleet_comparison.compare(
            self.fleet.ours,
            self.fleet.nova._replace(consumers=self.consumers),
            self.fleet.placement,
        )

    def only(self) -> finding.Finding:
        (found,) = self.find()
        return found

    def be(self, **changes: Any) -> None:
        """Let Nova say something else of the server."""
        self.fleet.servers[self.uuid] = dataclasses.replace(
            self.server,
            **changes,
        )

    def put(self, **changes: Any) -> None:
        """Let our database say something else of the unit."""
        self.fleet.units[self.place] = self.unit._replace(**changes)

    def assert_unsaid_while_busy(self) -> None:
        before = self.fleet.servers.get(self.uuid, self.server)
        busy: tuple[dict[str, Any], ...] = (
            {'task_state': 'resize_prep'},
            {'is_migrating': True},
            {'vm_state': 'building'},
        )
        for changes in busy:
            self.fleet.servers[self.uuid] = dataclasses.replace(
                before,
                **changes,
            )
            self.assertEqual([], self.find())
        self.fleet.servers[self.uuid] = before


class TestOfBindings(ComparisonTestCase):
    def test_nothing_is_wrong(self) -> None:
        self.assertEqual([], self.find())
        self.be(host='elsewhere')
        self.assert_unsaid_while_busy()

    def test_leak(self) -> None:
        del self.fleet.servers[self.uuid]
        found = self.only()
        self.assertEqual(
            (
                Kind.LEAK,
                self.arq.hostname,
                self.uuid,
                'Nova has no such server',
                'the host will unplug and free them',
            ),
            (
                found.kind,
                found.hostname,
                found.whose,
                found.but,
                found.remedy,
            ),
        )
        self.assertEqual({unit.uuid for unit in self.mine}, set(found.units))
        self.assertIn(self.arq.uuid, found.words)

    def test_leak_of_a_silent_host(self) -> None:
        del self.fleet.servers[self.uuid]
        self.fleet.hosts = [
            host._replace(is_silent=True) for host in self.fleet.hosts
        ]
        self.assertIn('host forget', self.only().remedy)

    def test_leak_of_what_nova_bound(self) -> None:
        for place, unit in enumerate(self.fleet.units):
            if unit in self.mine and unit.arq is not None:
                self.fleet.units[place] = unit._replace(
                    arq=unit.arq._replace(role=None)
                )
        del self.fleet.servers[self.uuid]
        self.assertEqual('nova-accel-manage audit --fix', self.only().remedy)

    def test_leak_of_a_server_on_no_host(self) -> None:
        self.be(host=None)
        self.assertEqual(Kind.LEAK, self.only().kind)

    def test_leak_of_an_old_role(self) -> None:
        self.fleet.unheld.append(
            self.arq._replace(uuid='old', role='old', hostname='elsewhere')
        )
        found = self.only()
        self.assertEqual(
            (Kind.LEAK, 'elsewhere', ()),
            (found.kind, found.hostname, found.units),
        )
        self.be(is_migrating=True)
        self.assertEqual([], self.find())

    def test_leak_of_what_is_bound_to_nothing(self) -> None:
        del self.fleet.allocations[self.unit.rp_uuid]
        self.put(
            arq=self.arq._replace(
                state='Initial', instance_uuid=None, hostname=None
            )
        )
        found = self.only()
        self.assertEqual(
            (Kind.LEAK, self.arq.uuid, (self.unit.uuid,)),
            (found.kind, found.whose, found.units),
        )
        self.assertEqual('it is Initial and bound to no server', found.but)

    def test_elsewhere(self) -> None:
        self.be(host='elsewhere')
        found = self.only()
        self.assertEqual(
            (Kind.ELSEWHERE, 'the server is on host elsewhere'),
            (found.kind, found.but),
        )

    def test_missing(self) -> None:
        self.put(arq=None)
        self.fleet.unheld.append(self.arq)
        found = self.only()
        self.assertEqual((Kind.MISSING, self.uuid), (found.kind, found.whose))
        self.assertEqual(f'ARQ {self.arq.uuid} is without a unit', found.but)
        self.assert_unsaid_while_busy()

    def test_missing_of_a_failed_one(self) -> None:
        self.put(arq=self.arq._replace(state='BindFailed'))
        self.assertEqual(Kind.MISSING, self.only().kind)
        self.put(arq=self.arq._replace(state='Provisioning'))
        self.assertEqual([], self.find())

    def test_gone(self) -> None:
        self.put(
            condition=dataclasses.replace(
                self.unit.condition, is_present=False
            )
        )
        found = self.only()
        self.assertEqual(
            (Kind.GONE, (self.unit.uuid,)), (found.kind, found.units)
        )
        # One problem is told once.
        del self.fleet.servers[self.uuid]
        self.assertEqual(Kind.LEAK, self.only().kind)

    def test_many_are_named_in_short(self) -> None:
        del self.fleet.servers[self.uuid]
        self.fleet.unheld += [
            self.arq._replace(uuid=f'arq {number}') for number in range(9)
        ]
        self.assertIn('more are bound on host', self.only().words)


class TestOfPassedThrough(ComparisonTestCase):
    def pass_through(self, address: str) -> None:
        self.fleet.passed_through[self.arq.hostname or '', address] = 'other'

    def test_a_function(self) -> None:
        self.pass_through(self.unit.address)
        found = self.only()
        self.assertEqual(
            (Kind.DOUBLE, 'other', f'it is held for {self.uuid}'),
            (found.kind, found.whose, found.but),
        )

    def test_a_whole_card(self) -> None:
        device = self.fleet.devices[self.unit.device_uuid]
        self.pass_through(device.address)
        found = self.find()
        self.assertEqual({Kind.DOUBLE}, {each.kind for each in found})
        self.assertIn(
            self.unit.uuid, [uuid for each in found for uuid in each.units]
        )

    def test_a_free_one(self) -> None:
        del self.fleet.allocations[self.unit.rp_uuid]
        del self.fleet.servers[self.uuid]
        for place, unit in enumerate(self.fleet.units):
            if unit in self.mine:
                self.fleet.units[place] = unit._replace(arq=None)
        self.put(arq=None)
        self.fleet.allocations.clear()
        self.pass_through(self.unit.address)
        self.assertEqual('it is free', self.only().but)
        # No one gets it, as its host has noticed.
        self.put(
            arq=None,
            condition=dataclasses.replace(
                self.unit.condition, fault='Nova claims it'
            ),
        )
        self.assertEqual([], self.find())
        self.put(
            arq=None,
            condition=dataclasses.replace(
                self.unit.condition, status=hardware.Status.MAINTAINING
            ),
        )
        self.assertEqual([], self.find())

    def test_another_host(self) -> None:
        self.fleet.passed_through['elsewhere', self.unit.address] = 'other'
        self.assertEqual([], self.find())


class TestOfPlacement(ComparisonTestCase):
    @property
    def allocated(self) -> dict[str, dict[str, int]]:
        return self.fleet.allocations[self.unit.rp_uuid]

    def test_uncounted(self) -> None:
        del self.allocated[self.uuid]
        found = self.only()
        self.assertEqual(
            (Kind.UNCOUNTED, 'Placement counts 0'), (found.kind, found.but)
        )
        self.assert_unsaid_while_busy()

    def test_overcounted(self) -> None:
        self.allocated[self.uuid][self.unit.resource_class] += 1
        found = self.only()
        self.assertEqual(
            (Kind.OVERCOUNTED, self.arq.hostname), (found.kind, found.hostname)
        )
        self.assert_unsaid_while_busy()

    def test_the_share_of_a_card_is_no_unit(self) -> None:
        self.allocated[self.uuid][naming.CARD_SHARE] = 9
        self.assertEqual([], self.find())

    def test_overcounted_for_nobody(self) -> None:
        self.allocated['nobody'] = {self.unit.resource_class: 1}
        found = self.only()
        self.assertEqual(
            (Kind.OVERCOUNTED, 'Nova has no such server'),
            (found.kind, found.but),
        )
        self.assertEqual((self.unit.device_uuid,), found.devices)
        # Such as a migration, or a server that is about to be made.
        self.consumers.add('nobody')
        self.assertEqual([], self.find())

    def test_a_provider_that_was_not_asked(self) -> None:
        del self.fleet.allocations[self.unit.rp_uuid]
        self.assertEqual([], self.find())

    def test_a_provider_of_a_pool(self) -> None:
        other = next(
            place
            for place, unit in enumerate(self.fleet.units)
            if unit.device_uuid != self.unit.device_uuid
        )
        self.fleet.units[other] = self.fleet.units[other]._replace(
            rp_uuid=self.unit.rp_uuid, arq=None
        )
        self.fleet.servers.clear()
        self.allocated.clear()
        self.allocated['nobody'] = {self.unit.resource_class: 1}
        (found,) = [
            each for each in self.find() if each.kind is Kind.OVERCOUNTED
        ]
        self.assertEqual(((), ()), (found.devices, found.units))

    def test_nobodys(self) -> None:
        for name, parent in (('root', None), ('child', 'root')):
            self.fleet.providers.append(
                fleet_sources.FleetProvider(name, name, parent)
            )
        self.assertEqual(
            [(Kind.NOBODYS, 'child'), (Kind.NOBODYS, 'root')],
            [(each.kind, each.whose) for each in self.find()],
        )

    def test_what_is_above_a_reported_one_is_its_hosts(self) -> None:
        self.fleet.providers = [
            provider._replace(parent_uuid='set')
            if provider.uuid == self.unit.rp_uuid
            else provider
            for provider in self.fleet.providers
        ] + [
            fleet_sources.FleetProvider('set', 'set', 'larger set'),
            fleet_sources.FleetProvider('larger set', 'larger set', 'no one'),
        ]
        self.assertNotIn('set', ' '.join(each.whose for each in self.find()))


class TestLasting(ComparisonTestCase):
    def test_only_what_is_found_twice(self) -> None:
        del self.fleet.servers[self.uuid]
        before = self.find()
        self.assertEqual(before, fleet_comparison.lasting(before, self.find()))
        self.assertEqual([], fleet_comparison.lasting([], before))
        self.assertEqual([], fleet_comparison.lasting(before, []))


class TestProperties(testtools.TestCase):
    @hypothesis.given(strategies.integers(1, 120))
    def test_no_fleet_has_a_false_one(self, devices: int) -> None:
        fleet = simulated_fleet.SimulatedFleet(devices)
        self.assertEqual(
            [],
            fleet_comparison.compare(fleet.ours, fleet.nova, fleet.placement),
        )

    @hypothesis.given(strategies.data())
    def test_any_server_that_vanishes_is_named(
        self, data: strategies.DataObject
    ) -> None:
        fleet = simulated_fleet.SimulatedFleet(64)
        gone = data.draw(
            strategies.sets(strategies.sampled_from(sorted(fleet.servers)))
        )
        for uuid in gone:
            del fleet.servers[uuid]
        self.assertEqual(
            [(Kind.LEAK, uuid) for uuid in sorted(gone)],
            sorted(
                (each.kind, each.whose)
                for each in fleet_comparison.compare(
                    fleet.ours, fleet.nova, fleet.placement
                )
            ),
        )
