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

import testscenarios

from db import base
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db import provisioning
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class TestReplace(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1))
        self.host.report()
        self.make_profile()
        self.requests = [
            self.request(self.host.allocated(bus=bus)) for bus in (0, 1)
        ]
        self.first, self.second = (
            host_arqs.acquire(request)[0]['uuid'] for request in self.requests
        )

    def replace(self, *uuids: str, hostname: str = 'compute-1') -> list[str]:
        """Those that are bound again."""
        return [arq['uuid'] for arq in provisioning.replace(hostname, uuids)]

    def states(self) -> tuple[str, str]:
        found = {arq['uuid']: arq['state'] for arq in client_arqs.get_all()}
        return found[self.first], found[self.second]

    def test_there_and_back(self) -> None:
        self.assertEqual([], self.replace(self.first, self.second))
        self.assertEqual(('Provisioning', 'Provisioning'), self.states())
        self.assertEqual([self.first], self.replace(self.second))
        self.assertEqual(('Bound', 'Provisioning'), self.states())
        self.assertEqual([], self.replace(self.second))
        self.assertEqual([self.second], self.replace())
        self.assertEqual(('Bound', 'Bound'), self.states())

    def test_what_has_failed_is_told_and_made_all_the_same(self) -> None:
        both = [self.first, self.second]
        for failed in ([self.first], both, []):
            # What the host does not make, it cannot fail to make.
            found = provisioning.replace('compute-1', [self.first], failed)
            self.assertEqual(
                [(self.first, 'Provisioning')] if failed else [],
                [(arq['uuid'], arq['state']) for arq in found],
            )
            self.assertEqual(('Provisioning', 'Bound'), self.states())
        self.assertEqual(
            [], provisioning.replace('compute-2', [], [self.first])
        )
        found = provisioning.replace('compute-1', [self.second], both)
        self.assertEqual(
            {self.first: 'Bound', self.second: 'Provisioning'},
            {arq['uuid']: arq['state'] for arq in found},
        )

    def test_another_hosts_stay_as_they_are(self) -> None:
        self.assertEqual([], self.replace(self.first, hostname='compute-2'))
        self.assertEqual(('Bound', 'Bound'), self.states())
        self.replace(self.first)
        self.assertEqual([], self.replace(hostname='compute-2'))
        self.assertEqual(('Provisioning', 'Bound'), self.states())

    def test_what_is_not_bound_stays_so(self) -> None:
        [made] = client_arqs.create('fpga', base.PROJECT)
        self.assertEqual([], self.replace(made['uuid']))
        self.assertEqual(
            'Initial',
            next(
                arq['state']
                for arq in client_arqs.get_all()
                if arq['uuid'] == made['uuid']
            ),
        )

    def test_it_moves_to_another_role_meanwhile(self) -> None:
        self.replace(self.first)
        key = self.requests[0].key
        [moved] = adoption.adopt(
            (*key[:2], 'old'),
            self.requests[0].attempt + 1,
            [self.first],
            'active',
        )
        self.assertEqual(
            (self.first, 'old', 'Provisioning'),
            (moved['uuid'], moved['role'], moved['state']),
        )
        self.assertEqual([self.first], self.replace())

    def test_it_is_given_back_meanwhile(self) -> None:
        self.replace(self.first)
        host_arqs.release(*self.requests[0].key, self.requests[0].attempt)
        self.assertEqual([], self.replace())
