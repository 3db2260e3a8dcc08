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
import webob

from rig.stubs import keystone

PROJECT = keystone.Project('a' * 32, 'demo')
ADMIN = keystone.User('1' * 32, 'admin', 'secret', PROJECT, ('admin',))
DEMO = keystone.User('2' * 32, 'demo', 'secret', PROJECT, ('member',))

WANTED = {
    'service_id': 'nova',
    'region_id': keystone.REGION,
    'resource_name': 'class:FPGA',
    'default_limit': 2,
}


class TestLimits(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.keystone = keystone.Keystone(
            'http://127.0.0.1:1/identity', [ADMIN, DEMO]
        )
        self.keystone.register('compute', 'nova', 'http://127.0.0.1:1/v2.1')

    def ask(self, method, path, body=None, user=ADMIN):
        request = webob.Request.blank(
            f'/v3/{path}',
            method=method,
            headers={'X-Auth-Token': self.keystone.issue(user)},
        )
        if body is not None:
            request.json = body
        return request.get_response(self.keystone)

    def make(self, **changes):
        return self.ask(
            'POST',
            'registered_limits',
            {'registered_limits': [{**WANTED, **changes}]},
        )

    def found(self, query=''):
        return self.ask('GET', f'registered_limits{query}').json[
            'registered_limits'
        ]

    def test_a_limit_lives(self):
        [made] = self.make().json['registered_limits']
        self.assertEqual([made], self.found())
        path = f'registered_limits/{made["id"]}'
        changed = {'registered_limit': {**made, 'default_limit': 4}}
        self.assertEqual(
            changed,
            self.ask(
                'PATCH', path, {'registered_limit': {'default_limit': 4}}
            ).json,
        )
        self.assertEqual(changed, self.ask('GET', path).json)
        self.assertEqual(204, self.ask('DELETE', path).status_int)
        self.assertEqual(404, self.ask('GET', path).status_int)

    def test_one_of_a_resource_in_a_region(self):
        self.assertEqual(201, self.make().status_int)
        self.assertEqual(409, self.make().status_int)
        self.assertEqual(201, self.make(region_id=None).status_int)
        self.assertEqual(
            [keystone.REGION],
            [
                each['region_id']
                for each in self.found(
                    f'?region_id={keystone.REGION}&resource_name=class:FPGA'
                )
            ],
        )

    def test_of_a_project(self):
        wanted = {
            **{name: WANTED[name] for name in WANTED if '_id' in name},
            'resource_name': 'class:FPGA',
            'project_id': PROJECT.id,
            'resource_limit': 8,
        }
        self.ask('POST', 'limits', {'limits': [wanted]})
        [found] = self.ask('GET', f'limits?project_id={PROJECT.id}').json[
            'limits'
        ]
        self.assertEqual(8, found['resource_limit'])
        self.assertEqual(
            {'model': {'name': 'flat'}}, self.ask('GET', 'limits/model').json
        )

    def test_what_they_are_limits_of(self):
        for path, found in (
            ('services?name=nova', ['nova']),
            ('projects?name=demo', [PROJECT.id]),
            ('endpoints?service_id=nova&interface=public', ['nova-public']),
        ):
            name = path.partition('?')[0]
            self.assertEqual(
                found,
                [each['id'] for each in self.ask('GET', path).json[name]],
            )
            one = self.ask('GET', f'{name}/{found[0]}').json
            self.assertEqual(found[0], one[name.removesuffix('s')]['id'])
        self.assertEqual(404, self.ask('GET', 'services/none').status_int)
        self.assertEqual(404, self.ask('POST', 'services', {}).status_int)

    def test_administrators_alone(self):
        self.assertEqual(
            403, self.ask('GET', 'registered_limits', user=DEMO).status_int
        )
