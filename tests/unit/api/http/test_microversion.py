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

import fixtures
import webob

from unit.api import base


class NegotiationTest(base.ApiTestCase):
    def test_answers_name_the_version_that_they_have(self) -> None:
        for asked, served in (
            ('2.0', '2.0'),
            ('2.2', '2.2'),
            ('latest', '2.5'),
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
        for version in ('2.0', 'latest', '2.5', '3.0', 'x'):
            for path in ('/device_profiles', '/nothing'):
                answer = self.call('GET', path, version=version)
                self.assertEqual(
                    ['2.0', '2.5'],
                    [
                        answer.headers[f'OpenStack-API-{name}-Version']
                        for name in ('Minimum', 'Maximum')
                    ],
                )

    def test_refuses_a_malformed_version(self) -> None:
        for version in ('x', '2', '2.x', '2.3.4', '9' * 5000):
            answer = self.call('GET', '/device_profiles', version=version)
            self.assertEqual(406, answer.status_int)
            self.assertEqual('application/json', answer.content_type)
            fault = json.loads(answer.json['error_message'])
            self.assertIn(
                f'Version {version} is malformed', fault['description']
            )


class ServiceTypeTest(base.ApiTestCase):
    """Texts of the header ``OpenStack-API-Version``, as Cyborg takes them."""

    def ask(self, text: str | None) -> webob.Response:
        request = webob.Request.blank('/accelerator/v2/device_profiles')
        request.environ.update(base.caller_headers(base.ADMIN, base.PROJECT))
        if text is not None:
            request.headers['OpenStack-API-Version'] = text
        return request.get_response(self.api)

    def test_it_may_be_missing(self) -> None:
        for text, served in (
            ('2.2', '2.2'),
            (' 2.3 ', '2.3'),
            ('latest', '2.5'),
            ('Latest', '2.5'),
            ('accelerator Latest', '2.5'),
            ('ACCELERATOR 2.2', '2.2'),
            ('compute 2.90, accelerator 2.1', '2.1'),
            ('accelerator 2.1, 2.3', '2.1'),
            ('compute latest', '2.0'),
            ('\xff 2.2', '2.0'),
            (None, '2.0'),
        ):
            self.assertEqual(
                f'accelerator {served}',
                self.ask(text).headers['OpenStack-API-Version'],
                text,
            )

    def test_a_version_of_nothing_is_refused(self) -> None:
        for text in (
            '',
            'x',
            '2',
            '2.2.1',
            '3.0',
            '2.50',
            '2.1, 2.3',
            'accelerator',
            '9' * 5000,
        ):
            answer = self.ask(text)
            self.assertEqual(406, answer.status_int, text)
            fault = json.loads(answer.json['error_message'])
            self.assertIn('[2.0, 2.5]', fault['description'])

    def test_the_log_says_once_what_to_send(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        for text in ('02.2', '02.2', 'accelerator 2.2', '02.x'):
            self.ask(text)
        self.assertEqual(1, log.output.count('accelerator 02.2'))
        self.assertEqual(1, len(log.output.splitlines()))
