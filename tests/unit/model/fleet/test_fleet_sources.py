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


import testtools

from nova_accel.model.fleet import fleet_sources
from nova_accel.testing import simulated_fleet


class TestSources(testtools.TestCase):
    def test_servers_of_all_arqs(self) -> None:
        ours = simulated_fleet.SimulatedFleet(24).ours
        uuids = ours.instance_uuids
        arq = next(unit.arq for unit in ours.units if unit.arq is not None)
        self.assertIn(arq.instance_uuid, uuids)
        lacking = arq._replace(instance_uuid='other')
        self.assertEqual(
            uuids | {'other'},
            ours._replace(unheld=[lacking]).instance_uuids,
        )
        unbound = arq._replace(instance_uuid=None)
        self.assertEqual(uuids, ours._replace(unheld=[unbound]).instance_uuids)

    def test_all_consumers(self) -> None:
        self.assertEqual(
            {'one', 'two'},
            fleet_sources.Placement(
                [], {'a': {'one': {}}, 'b': {'two': {}, 'one': {}}}
            ).consumers,
        )

    def test_settled(self) -> None:
        server = fleet_sources.FleetServer('host', 'active')
        self.assertTrue(server.is_settled)
        for busy in (
            fleet_sources.FleetServer('host', 'building'),
            fleet_sources.FleetServer('host', 'active', 'rebooting'),
            fleet_sources.FleetServer('host', 'active', is_migrating=True),
        ):
            self.assertFalse(busy.is_settled)

    def test_what_an_arq_holds(self) -> None:
        for state, is_holding in (
            ('Bound', True),
            ('Provisioning', True),
            ('BindFailed', False),
        ):
            arq = fleet_sources.FleetArq(
                'uuid', state, None, None, None, 'FPGA'
            )
            self.assertEqual(is_holding, arq.is_holding)
            self.assertIsNone(arq.typed_role)
