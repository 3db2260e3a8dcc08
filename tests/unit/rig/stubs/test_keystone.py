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

import testtools
import webob

from rig.stubs import keystone

URL = 'http://127.0.0.1:1/identity'
PROJECT = keystone.Project('a' * 32, 'demo')
OPERATOR = keystone.User(
    '2' * 32,
    'operator',
    'secret',
    PROJECT,
    ('member',),
    system_roles=('admin',),
)
DEMO = keystone.User('1' * 32, 'demo', 'secret', PROJECT, ('member', 'reader'))


class TestKeystone(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.keystone = keystone.Keystone(URL, [DEMO, OPERATOR])

    def ask(self, method: str, path: str, **kwargs: object) -> webob.Response:
        request = webob.Request.blank(path, method=method, **kwargs)
        return request.get_response(self.keystone)

    def ask_about(self, method: str, own: str, subject: str) -> webob.Response:
        """What whoever has a token hears about a token."""
        return self.ask(
            method,
            '/v3/auth/tokens',
            headers={'X-Auth-Token': own, 'X-Subject-Token': subject},
        )

    def log_in(
        self,
        password: str = 'secret',
        name: str = 'demo',
        project: str = 'demo',
        scope: object = None,
    ) -> webob.Response:
        return self.ask(
            'POST',
            '/v3/auth/tokens',
            json={
                'auth': {
                    'identity': {
                        'methods': ['password'],
                        'password': {
                            'user': {
                                'name': name,
                                'password': password,
                                'domain': {'id': 'default'},
                            }
                        },
                    },
                    'scope': scope
                    or {
                        'project': {
                            'name': project,
                            'domain': {'id': 'default'},
                        }
                    },
                }
            },
        )

    def test_password_gives_a_token_that_validates(self) -> None:
        answer = self.log_in()
        self.assertEqual(201, answer.status_int)
        token = answer.headers['X-Subject-Token']
        seen = self.ask(
            'GET',
            '/v3/auth/tokens',
            headers={'X-Auth-Token': token, 'X-Subject-Token': token},
        )
        self.assertEqual(200, seen.status_int)
        self.assertEqual(answer.json, seen.json)
        self.assertEqual(
            ('demo', PROJECT.id, ['member', 'reader']),
            (
                seen.json['token']['user']['name'],
                seen.json['token']['project']['id'],
                [role['name'] for role in seen.json['token']['roles']],
            ),
        )

    def test_nothing_else_gives_a_token(self) -> None:
        for answer in (
            self.log_in(password='wrong'),
            self.log_in(password=''),
            self.log_in(name='nobody'),
            self.log_in(project='another'),
            self.ask('POST', '/v3/auth/tokens', json={}),
            self.ask('POST', '/v3/auth/tokens', json=[]),
            self.ask('POST', '/v3/auth/tokens', body=b'{'),
        ):
            self.assertEqual(401, answer.status_int)
            self.assertNotIn('X-Subject-Token', answer.headers)

    def test_scope_of_the_system(self) -> None:
        scope = {'system': {'all': True}}
        token = self.log_in(name='operator', scope=scope).json['token']
        self.assertEqual({'all': True}, token['system'])
        self.assertNotIn('project', token)
        self.assertEqual(['admin'], [role['name'] for role in token['roles']])
        in_project = self.log_in(name='operator').json['token']
        self.assertNotIn('system', in_project)
        self.assertEqual(
            ['member'], [role['name'] for role in in_project['roles']]
        )
        for answer in (
            self.log_in(scope=scope),
            self.log_in('wrong', 'operator', scope=scope),
            self.log_in(name='operator', scope={'system': {}}),
            self.log_in(name='operator', scope={'domain': {'id': 'default'}}),
        ):
            self.assertEqual(401, answer.status_int)

    def test_one_more_user(self) -> None:
        self.assertEqual(401, self.log_in(name='late').status_int)
        self.keystone.add(dataclasses.replace(DEMO, name='late'))
        self.assertEqual(201, self.log_in(name='late').status_int)

    def test_only_holders_of_a_token_may_validate(self) -> None:
        token = self.keystone.issue(DEMO)
        self.assertEqual(
            401,
            self.ask(
                'GET', '/v3/auth/tokens', headers={'X-Subject-Token': token}
            ).status_int,
        )
        self.assertEqual(404, self.ask_about('GET', token, 'no').status_int)

    def test_revoked_token_is_unknown(self) -> None:
        token, other = (self.keystone.issue(DEMO) for _ in range(2))
        self.assertEqual(
            204, self.ask_about('DELETE', token, token).status_int
        )
        self.assertEqual(404, self.ask_about('GET', other, token).status_int)

    def test_issue_with_other_roles(self) -> None:
        token = self.keystone.issue(DEMO, ['reader'])
        seen = self.ask_about('GET', token, token)
        self.assertEqual(
            ['reader'], [role['name'] for role in seen.json['token']['roles']]
        )

    def test_catalog_has_what_is_registered(self) -> None:
        self.keystone.register('compute', 'nova', 'http://127.0.0.1:1/v2.1')
        seen = self.ask(
            'GET',
            '/v3/auth/catalog',
            headers={'X-Auth-Token': self.keystone.issue(DEMO)},
        )
        self.assertEqual(
            {
                'identity': {f'{URL}/v3'},
                'compute': {'http://127.0.0.1:1/v2.1'},
            },
            {
                service['type']: {
                    endpoint['url'] for endpoint in service['endpoints']
                }
                for service in seen.json['catalog']
            },
        )

    def test_discovery(self) -> None:
        self.assertEqual(300, self.ask('GET', '/').status_int)
        self.assertEqual('v3.14', self.ask('GET', '/v3').json['version']['id'])
        self.assertEqual(404, self.ask('GET', '/v4/users').status_int)
        self.assertEqual(401, self.ask('GET', '/v3/users').status_int)
