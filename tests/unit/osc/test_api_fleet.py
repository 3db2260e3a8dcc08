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
from osc_lib import exceptions

from nova_accel import conf
from nova_accel.db import fleet as fleet_db
from nova_accel.osc import api_fleet
from unit.osc import fleet


class TestSources(fleet.FleetTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sources = api_fleet.Sources(self.app)

    def test_the_database(self) -> None:
        ours = fleet_db.read(conf.CONF.nova_accel.host_silence_s)
        self.assertEqual(ours, self.sources.ours())

    def test_page_by_page(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.fleet.MAX_ON_A_PAGE', 1)
        )
        self.test_the_database()

    def test_one_host(self) -> None:
        ours = api_fleet.Sources(self.app, 'compute-2').ours()
        self.assertEqual(['compute-2'], [host.name for host in ours.hosts])

    def test_a_strange_view(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.osc.accelerator_calls.pages',
                lambda *_arguments: iter([[{'hostname': 'compute-1'}]]),
            )
        )
        error = self.assertRaises(exceptions.CommandError, self.sources.ours)
        self.assertIn('GET /topology', str(error))

    def test_only_hosts_with_arqs_are_asked_for(self) -> None:
        found = self.sources.nova(self.sources.ours(), {'other'})
        self.assertEqual({fleet.SERVER}, {*found.servers})
        self.assertEqual(
            ['/servers/detail compute-1.service', '/servers/other'],
            sorted(self.nova.asked),
        )

    def test_what_nova_does_not_tell_is_said_once(self) -> None:
        del self.nova.servers[fleet.SERVER]['OS-EXT-STS:vm_state']
        for _again in range(2):
            self.sources.nova(self.sources.ours())
        self.assertEqual({fleet.SERVER}, self.sources.untold)
        self.assertEqual(1, self.log.output.count(fleet.SERVER))

    def test_placement(self) -> None:
        self.nova.of_placement['/traits'] = {'traits': []}
        self.assertEqual({'traits': []}, self.sources.placement('/traits'))
        self.assertEqual({'placement 1.22'}, self.nova.versions)
        self.assertIsNone(self.sources.placement('/nothing'))

    def test_placement_refuses(self) -> None:
        self.useFixture(
            fixtures.MockPatchObject(
                self.nova, '_answer', return_value=(403, {})
            )
        )
        error = self.assertRaises(
            exceptions.CommandError, self.sources.placement, '/traits'
        )
        self.assertIn('/traits with 403', str(error))
