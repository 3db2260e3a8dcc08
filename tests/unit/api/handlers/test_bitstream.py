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

from typing import Any

import fixtures

from nova_accel.model import host_contract
from unit.api import base
from unit.api import programming

_PATH = f'/bitstreams/{programming.BITSTREAM}/prefetch'


class PrefetchTest(programming.ProgrammingTestCase):
    def prefetch(self, body: Any, status: int = 202) -> Any:
        answer = self.call('POST', _PATH, body, version='2.4')
        self.assertEqual(status, answer.status_int, answer.text)
        return answer.json

    def test_by_all_and_by_some(self) -> None:
        for body in ({}, {'hostnames': [base.HOSTNAME]}):
            self.assertEqual(
                {'hostnames': [base.HOSTNAME]}, self.prefetch(body)
            )
            self.assertEqual(
                programming.BITSTREAM, self.host.fetched.get(timeout=10)
            )

    def test_a_host_that_is_in_no_cell(self) -> None:
        """It does not keep the others from being asked."""
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.db.deployable.get_hosts_of_regions',
                return_value=[
                    {
                        'hostname': name,
                        'service_host': name,
                        'is_silent': False,
                        'contract': host_contract.NEWEST,
                    }
                    for name in ('compute-0', base.HOSTNAME)
                ],
            )
        )
        self.assertEqual({'hostnames': [base.HOSTNAME]}, self.prefetch({}))
        self.assertEqual(
            programming.BITSTREAM, self.host.fetched.get(timeout=10)
        )
        self.assertIn(
            'compute-0',
            self.prefetch({'hostnames': ['compute-0', base.HOSTNAME]}, 409)[
                'error_message'
            ],
        )

    def test_a_host_that_is_not_known(self) -> None:
        self.assertIn(
            'compute-2',
            self.prefetch({'hostnames': [base.HOSTNAME, 'compute-2']}, 404)[
                'error_message'
            ],
        )
        self.assertTrue(self.host.fetched.empty())

    def test_a_silent_host(self) -> None:
        self.be_silent()
        self.assertIn(
            'has not reported',
            self.prefetch({'hostnames': [base.HOSTNAME]}, 409)[
                'error_message'
            ],
        )
        self.assertEqual({'hostnames': []}, self.prefetch({}))
        self.assertTrue(self.host.fetched.empty())

    def test_bad_requests(self) -> None:
        for body in (
            [],
            {'hostnames': []},
            {'hostnames': ['a b']},
            {'hosts': []},
        ):
            self.prefetch(body, 400)
        self.refused(400, 'POST', '/bitstreams/x/prefetch', {}, version='2.4')
        self.refused(406, 'POST', _PATH, {}, version='2.3')
        self.refused(403, 'POST', _PATH, {}, version='2.4', roles=base.MANAGER)
