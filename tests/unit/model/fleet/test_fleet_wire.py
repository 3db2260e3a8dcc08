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
import datetime
import json
from typing import Any

import testtools

from nova_accel.model import finding
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import fleet_wire
from nova_accel.model.fleet import host_drain
from nova_accel.testing import simulated_fleet

_SIMULATED = simulated_fleet.SimulatedFleet(48)


def _disagreeing() -> fleet_sources.Ours:
    found = simulated_fleet.SimulatedFleet(2000)
    found.disagree()
    return found.ours


def _sent(ours: fleet_sources.Ours) -> Any:
    return json.loads(json.dumps(fleet_wire.to_json(ours)))


def _sorted(ours: fleet_sources.Ours) -> fleet_sources.Ours:
    return fleet_sources.Ours(*(sorted(each, key=repr) for each in ours))


class TestWire(testtools.TestCase):
    def test_what_is_sent_arrives(self) -> None:
        ours = _disagreeing()
        self.assertNotEqual([], ours.unheld)
        self.assertEqual(
            _sorted(ours), _sorted(fleet_wire.from_json(_sent(ours)))
        )

    def test_findings_arrive(self) -> None:
        ours = _disagreeing()
        since = datetime.datetime(2026, 5, 1, 12, 30, tzinfo=datetime.UTC)
        found = [
            finding.Finding(
                finding.Kind.MDEV,
                'gone',
                True,
                device='0000:81:00.0',
                hostname=ours.hosts[0].name,
                since=since,
            )
        ]
        sent = _sent(ours._replace(findings=found))
        self.assertEqual(found, list(fleet_wire.from_json(sent).findings))

    def test_drained_hosts(self) -> None:
        hosts = [
            host._replace(
                drain=host_drain.HostDrain('fans', until, until is not None)
            )
            for host, until in zip(
                _SIMULATED.ours.hosts,
                (None, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
                strict=False,
            )
        ]
        ours = _SIMULATED.ours._replace(hosts=hosts)
        self.assertEqual(hosts, fleet_wire.from_json(_sent(ours)).hosts)

    def test_a_unit_for_which_others_leave_no_room(self) -> None:
        excluded = [
            unit._replace(
                condition=dataclasses.replace(unit.condition, has_room=False)
            )
            for unit in _SIMULATED.ours.units
        ]
        sent = fleet_wire.from_json(
            _sent(_SIMULATED.ours._replace(units=excluded))
        )
        self.assertEqual(
            {False}, {unit.condition.has_room for unit in sent.units}
        )

    def test_a_unit_has_its_state_in_one_word(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(800)
        states = {
            row.unit.uuid: (row.state, row.why)
            for row in fleet.join(simulated.ours, simulated.nova).rows
            if row.unit is not None
        }
        self.assertLess(4, len({state for state, _why in states.values()}))
        self.assertEqual(
            states,
            {
                unit['uuid']: (unit['state'], unit['why'])
                for host in _sent(simulated.ours)
                for device in host['devices']
                for unit in device['units']
            },
        )

    def test_a_host_that_has_never_reported(self) -> None:
        arq = fleet_sources.FleetArq(
            'uuid', 'BindFailed', None, 'elsewhere', 'server', 'FPGA', 'p'
        )
        ours = _SIMULATED.ours._replace(unheld=[arq])
        (host,) = [
            host for host in _sent(ours) if host['hostname'] == 'elsewhere'
        ]
        self.assertIsNone(host['service_host'])
        self.assertEqual(
            _sorted(ours), _sorted(fleet_wire.from_json(_sent(ours)))
        )

    def test_what_came_between_two_statements(self) -> None:
        hosts = _SIMULATED.ours.hosts
        sent = _sent(_SIMULATED.ours._replace(hosts=hosts[1:]))
        self.assertEqual(len(hosts) - 1, len(sent))
        self.assertNotIn(
            hosts[0].name,
            {device.hostname for device in fleet_wire.from_json(sent).devices},
        )

    def test_a_newer_api_may_say_more(self) -> None:
        sent = _sent(_SIMULATED.ours)
        for host in sent:
            host['more'] = 1
            for device in host['devices']:
                device['more'] = 1
                for unit in device['units']:
                    unit['more'] = 1
                    if unit['arq']:
                        unit['arq']['more'] = 1
        self.assertEqual(
            _sorted(_SIMULATED.ours), _sorted(fleet_wire.from_json(sent))
        )

    def test_each_field_that_is_missing_is_told(self) -> None:
        def with_arq(sent: Any) -> Any:
            return next(
                unit['arq']
                for host in sent
                for device in host['devices']
                for unit in device['units']
                if unit['arq']
            )

        for place_in in (
            lambda sent: sent[0],
            lambda sent: sent[0]['devices'][0],
            lambda sent: sent[0]['devices'][0]['units'][0],
            with_arq,
        ):
            for name in place_in(_sent(_SIMULATED.ours)):
                sent = _sent(_SIMULATED.ours)
                del place_in(sent)[name]
                # These are for other readers.
                if name in ('state', 'why') and place_in is not with_arq:
                    fleet_wire.from_json(sent)
                else:
                    error = self.assertRaises(
                        ValueError, fleet_wire.from_json, sent
                    )
                    self.assertIn(name, str(error))

    def test_an_unknown_role(self) -> None:
        sent = _sent(_SIMULATED.ours)
        unit = next(
            unit
            for host in sent
            for device in host['devices']
            for unit in device['units']
            if unit['arq']
        )
        unit['arq']['role'] = 'leader'
        error = self.assertRaises(ValueError, fleet_wire.from_json, sent)
        self.assertIn('leader', str(error))

    def test_no_view_at_all(self) -> None:
        for sent in (None, 1, [1], [{}], [None]):
            self.assertRaises(ValueError, fleet_wire.from_json, sent)
