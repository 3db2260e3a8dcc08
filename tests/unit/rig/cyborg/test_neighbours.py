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

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3
import testtools

from rig.cyborg import neighbours


class TestNeighbours(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.neighbours = self.useFixture(neighbours.Neighbours())
        user = self.neighbours.user
        self.session = session.Session(
            v3.Password(
                self.neighbours.auth_url,
                username=user.name,
                password=user.password,
                user_domain_name='Default',
                project_name=user.project.name,
                project_domain_name='Default',
            )
        )

    def service(self, type_: str) -> adapter.Adapter:
        return adapter.Adapter(self.session, service_type=type_)

    def test_placement_has_the_provider_of_the_host(self) -> None:
        self.neighbours.make_provider('host1')
        answer = self.service('placement').get('/resource_providers')
        self.assertEqual(
            ['host1'],
            [
                provider['name']
                for provider in answer.json()['resource_providers']
            ],
        )

    def test_nova_takes_events(self) -> None:
        event = {'name': 'accelerator-request-bound', 'tag': 'u1'}
        answer = self.service('compute').post(
            '/os-server-external-events', json={'events': [event]}
        )
        self.assertEqual(200, answer.status_code)
        self.assertEqual({'events': [{**event, 'code': 200}]}, answer.json())

    def test_nova_says_its_versions(self) -> None:
        found = self.service('compute').get_endpoint_data()
        self.assertEqual((2, 1), found.api_version)
        self.assertLess((2, 82), found.max_microversion)
