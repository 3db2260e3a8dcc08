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

import fixtures
from nova import objects
from nova.scheduler import host_manager
import testtools

from nova_accel import conf
from nova_accel.conf import scheduler
from nova_accel.model.units import unit_choice
from nova_accel.scheduler import unit_policies

CONF = conf.CONF
PACK, SPREAD = unit_choice.UnitPolicy.PACK, unit_choice.UnitPolicy.SPREAD


class TestUnitPolicies(testtools.TestCase):
    def configure(self, **policies):
        CONF.set_override('unit_policies', policies, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'unit_policies', 'nova_accel')

    def policy(self, resource_class, *metadata):
        host = host_manager.HostState('host', 'node', None)
        host.aggregates = [
            objects.Aggregate(metadata=each) for each in metadata
        ]
        return unit_policies.of_hosts(resource_class).of(host)

    def test_servers_are_packed(self):
        self.assertEqual(PACK, self.policy('PGPU'))

    def test_by_resource_class(self):
        self.configure(PGPU='spread')
        self.assertEqual(SPREAD, self.policy('PGPU'))
        self.assertEqual(PACK, self.policy('FPGA'))

    def test_an_aggregate_overrides_it(self):
        self.configure(PGPU='spread')
        self.assertEqual(
            PACK, self.policy('PGPU', {}, {'unit_policy:PGPU': 'pack'})
        )
        self.assertEqual(
            SPREAD, self.policy('PGPU', {'unit_policy:FPGA': 'pack'})
        )

    def test_aggregates_that_disagree(self):
        self.assertEqual(
            PACK,
            self.policy(
                'FPGA',
                {'unit_policy:FPGA': 'spread'},
                {'unit_policy:FPGA': 'pack'},
            ),
        )

    def test_a_mistake_is_told(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.assertEqual(
            PACK, self.policy('FPGA', {'unit_policy:FPGA': 'scatter'})
        )
        self.assertIn('unit_policy:FPGA', log.output)
        self.assertIn('scatter', log.output)

    def test_in_the_file(self):
        [option] = [
            option
            for option in scheduler.OPTS
            if option.name == 'unit_policies'
        ]
        self.assertEqual(
            {'PGPU': SPREAD, 'FPGA': PACK},
            option.type('PGPU:spread,FPGA:pack'),
        )
        self.assertRaises(ValueError, option.type, 'FPGA:scatter')
