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


import datetime
from typing import Any

import testtools

from nova_accel import exceptions
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_wire
from nova_accel.model.fleet import host_drain
from nova_accel.model.units import unit_state
from nova_accel.testing import simulated_fleet

_UNTIL = datetime.datetime(2026, 11, 24, 6, tzinfo=datetime.UTC)
MAINTAINING = hardware.Status.MAINTAINING


class TestJoin(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.simulated = simulated_fleet.SimulatedFleet(24)

    def join(self) -> fleet.Fleet:
        return fleet.join(self.simulated.ours, self.simulated.nova)

    def row_of(self, is_held: bool, **condition: Any) -> fleet.FleetRow:
        """The row of a unit in a condition."""
        place, unit = next(
            (place, unit)
            for place, unit in enumerate(self.simulated.units)
            if (unit.arq is not None) == is_held
        )
        self.simulated.units[place] = unit._replace(
            condition=unit_state.Condition(**condition)
        )
        return next(
            row
            for row in self.join().rows
            if row.unit is not None and row.unit.uuid == unit.uuid
        )

    def test_of_one_host(self) -> None:
        found = self.join()
        parts = [found.of_host(host.name) for host in found.hosts]
        self.assertGreater(len(parts), 1)
        self.assertEqual(
            list(found.rows), [row for part in parts for row in part.rows]
        )
        for host, part in zip(found.hosts, parts, strict=True):
            self.assertEqual((host,), part.hosts)
        error = self.assertRaises(
            exceptions.NotFound, found.of_host, 'nowhere'
        )
        self.assertIn('Host nowhere not found', str(error))

    def test_what_excludes_a_unit(self) -> None:
        """What its card is now; also in what is sent."""
        held = next(
            place
            for place, unit in enumerate(self.simulated.units)
            if unit.arq is not None
        )
        taken = self.simulated.units[held]._replace(part='mig:3g.40gb')
        excluded = taken._replace(
            uuid='excluded',
            part='whole',
            arq=None,
            condition=unit_state.Condition(has_room=False),
        )
        self.simulated.units[held : held + 1] = [
            taken,
            taken._replace(uuid='another'),
            excluded,
        ]
        why = 'its card has 2 mig:3g.40gb'
        self.assertIn(
            ('excluded', 'excluded', why),
            [
                (row.unit.uuid, row.state, row.why)
                for row in self.join().rows
                if row.unit is not None
            ],
        )
        self.assertIn(
            why,
            [
                unit['why']
                for host in fleet_wire.to_json(self.simulated.ours)
                for device in host['devices']
                for unit in device['units']
            ],
        )

    def test_each_unit_has_a_row(self) -> None:
        found = self.join()
        self.assertEqual(
            {unit.uuid for unit in self.simulated.units},
            {row.unit.uuid for row in found.rows if row.unit is not None},
        )
        self.assertEqual(len(self.simulated.units), len(found.rows))
        self.assertEqual(3, len(found.hosts))
        self.assertEqual((), found.compared)
        self.assertFalse(found.is_placement_asked)

    def test_in_order(self) -> None:
        rows = self.join().rows
        self.simulated.units.reverse()
        self.simulated.hosts.reverse()
        self.assertEqual(rows, self.join().rows)

    def test_who_has_it(self) -> None:
        row = self.row_of(True)
        self.assertEqual('used', row.state)
        assert row.arq is not None and row.server is not None
        self.assertIs(
            self.simulated.servers[row.arq.instance_uuid or ''], row.server
        )
        self.assertIsNone(self.row_of(False).server)

    def test_states(self) -> None:
        cases: tuple[tuple[bool, dict[str, Any], str, bool], ...] = (
            (False, {}, 'free', False),
            (True, {}, 'used', False),
            (False, {'status': MAINTAINING}, 'drained', False),
            (True, {'status': MAINTAINING}, 'used', False),
            (False, {'is_clean': False}, 'unclean', False),
            (
                False,
                {'is_clean': False, 'unclean_reason': 'stuck'},
                'unclean',
                True,
            ),
            (False, {'fault': 'hot'}, 'faulty', True),
            (True, {'fault': 'hot'}, 'faulty', True),
            (True, {'is_present': False}, 'gone', True),
            (False, {'has_room': False}, 'excluded', False),
            (False, {'has_room': False, 'is_clean': False}, 'unclean', False),
            (False, {'has_room': False, 'fault': 'hot'}, 'faulty', True),
        )
        for is_held, condition, state, is_alarm in cases:
            row = self.row_of(is_held, **condition)
            self.assertEqual((state, is_alarm), (row.state, row.is_alarm))
        self.assertEqual('hot', self.row_of(False, fault='hot').why)
        self.assertIn(
            'its card has 1 ', self.row_of(False, has_room=False).why
        )
        self.assertEqual(
            'disabled by an administrator',
            self.row_of(True, status=MAINTAINING).why,
        )

    def test_of_a_silent_host_nothing_is_known(self) -> None:
        self.simulated.hosts = [
            host._replace(is_silent=True) for host in self.simulated.hosts
        ]
        self.assertEqual(
            {('unknown', True)},
            {(row.state, row.is_alarm) for row in self.join().rows},
        )

    def drain(self, is_overdue: bool = False, is_silent: bool = False) -> None:
        """Drain all hosts."""
        drain = host_drain.HostDrain('new fans', _UNTIL, is_overdue)
        self.simulated.hosts = [
            host._replace(drain=drain, is_silent=is_silent)
            for host in self.simulated.hosts
        ]

    def test_drained_hosts(self) -> None:
        self.drain()
        row = self.row_of(False, status=MAINTAINING)
        self.assertEqual(('drained', False), (row.state, row.is_alarm))
        self.assertEqual(
            'its host is drained until 2026-11-24 06:00 UTC: new fans', row.why
        )
        row = self.row_of(True, status=MAINTAINING)
        self.assertEqual(('used', False), (row.state, row.is_alarm))
        self.assertIn('new fans', row.why)
        # An administrator has enabled it meanwhile.
        row = self.row_of(False)
        self.assertEqual(('free', ''), (row.state, row.why))
        row = self.row_of(False, status=MAINTAINING, fault='hot')
        self.assertEqual(('faulty', True), (row.state, row.is_alarm))

    def test_drained_hosts_that_are_off(self) -> None:
        """That is wanted until the end, unless a server is there."""
        for is_overdue, is_held, state in (
            (False, False, 'drained'),
            (False, True, 'unknown'),
            (True, False, 'unknown'),
            (True, True, 'unknown'),
        ):
            self.drain(is_overdue, is_silent=True)
            row = self.row_of(is_held, status=MAINTAINING)
            self.assertEqual(state, row.state)
            self.assertEqual(state == 'unknown', row.is_alarm)
        self.drain(is_silent=True)
        self.assertTrue(
            self.row_of(False, status=MAINTAINING).why.endswith('silent')
        )

    def test_a_drained_host_whose_devices_have_no_units(self) -> None:
        self.simulated.units, self.simulated.servers = [], {}
        self.simulated.devices = {
            device.uuid: device._replace(status=MAINTAINING)
            for device in self.simulated.devices.values()
        }
        for is_overdue, state in (
            (False, 'drained'),
            (True, 'unknown'),
        ):
            self.drain(is_overdue, is_silent=True)
            self.assertEqual(
                {(state, is_overdue)},
                {(row.state, row.is_alarm) for row in self.join().rows},
            )

    def test_devices_without_units(self) -> None:
        self.simulated.units, self.simulated.servers = [], {}
        (one, *_rest) = self.simulated.devices.values()
        cases: tuple[tuple[dict[str, Any], str, bool], ...] = (
            ({}, 'unknown', False),
            ({'fault': 'hot'}, 'faulty', True),
            ({'status': MAINTAINING}, 'drained', False),
        )
        for change, state, is_alarm in cases:
            self.simulated.devices = {one.uuid: one._replace(**change)}
            (row,) = self.join().rows
            self.assertEqual((state, is_alarm), (row.state, row.is_alarm))
            self.assertIsNone(row.unit)
            self.assertIsNone(row.arq)


class TestLargeFleet(testtools.TestCase):
    """2,000 devices, with one disagreement of each kind."""

    def test_all_are_found_and_none_is_false(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        self.assertEqual(
            (),
            fleet.join(
                simulated.ours, simulated.nova, simulated.placement
            ).compared,
        )
        simulated.disagree()
        found = fleet.join(simulated.ours, simulated.nova, simulated.placement)
        self.assertEqual(2000, len({row.device.uuid for row in found.rows}))
        self.assertEqual(
            sorted(simulated.made.items()),
            [(each.kind, each.whose) for each in found.compared],
        )
        self.assertEqual({*disagreement.Subject}, {*simulated.made})

    def test_without_placement(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        simulated.disagree()
        found = fleet.join(simulated.ours, simulated.nova)
        self.assertEqual(
            {*disagreement.Subject}
            - {
                disagreement.Subject.UNCOUNTED,
                disagreement.Subject.OVERCOUNTED,
                disagreement.Subject.NOBODYS,
            },
            {each.kind for each in found.compared},
        )
