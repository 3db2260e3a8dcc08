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

import json

from unit.api import base


class NegotiationTest(base.ApiTestCase):
    def test_answers_name_the_version_that_they_have(self) -> None:
        for asked, served in (
            ('2.0', '2.0'),
            ('2.2', '2.2'),
            ('latest', '2.9'),
            (None, '2.0'),
        ):
            for path in ('/device_profiles', '/nothing'):
                answer = self.call('GET', path, version=asked)
                self.assertEqual(
                    f'accelerator {served}',
                    answer.headers['OpenStack-API-Version'],
                )
                self.assertEqual(
                    'openstack-api-version', answer.headers['Vary'].lower()
                )

    def test_all_answers_tell_which_there_are(self) -> None:
        for version in ('2.0', 'latest', '2.9', '3.0', 'x'):
            for path in ('/device_profiles', '/nothing'):
                answer = self.call('GET', path, version=version)
                self.assertEqual(
                    ['2.0', '2.9'],
                    [
                        answer.headers[f'OpenStack-API-{name}-Version']
                        for name in ('Minimum', 'Maximum')
                    ],
                )

    def test_refuses_a_malformed_version(self) -> None:
        for version in ('x', '2', '2.x', '2.3.4', '9' * 5000):
            answer = self.call('GET', '/device_profiles', version=version)
            self.assertEqual(400, answer.status_int)
            self.assertEqual('application/json', answer.content_type)
            fault = json.loads(answer.json['error_message'])
            self.assertIn(
                f'Version {version} is malformed', fault['description']
            )
