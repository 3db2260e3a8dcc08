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

from unit.api import base

_PATH = '/device_profiles'


class DeviceProfileTest(base.ApiTestCase):
    def names(self, query: str = '') -> list[str]:
        profiles = self.ok('GET', f'{_PATH}{query}')['device_profiles']
        return [profile['name'] for profile in profiles]

    def test_lists_by_names(self) -> None:
        for name in 'abc':
            self.create_profile(name)
        self.assertEqual(['a', 'b', 'c'], self.names())
        self.assertEqual(['a', 'c'], self.names('?name=c,nope,a'))
        self.assertEqual([], self.names('?name='))

    def test_takes_the_uuid_that_the_caller_chose(self) -> None:
        created = self.ok(
            'POST',
            _PATH,
            [{'name': 'a', 'groups': [base.GROUP], 'uuid': base.NOBODY}],
        )
        self.assertEqual(base.NOBODY, created['uuid'])
        self.assertIn(
            base.NOBODY,
            self.refused(
                409,
                'POST',
                _PATH,
                [{'name': 'b', 'groups': [base.GROUP], 'uuid': base.NOBODY}],
            ),
        )

    def test_keeps_a_description_of_any_script(self) -> None:
        self.ok(
            'POST',
            _PATH,
            [
                {
                    'name': 'a',
                    'groups': [base.GROUP],
                    'description': 'schnell ⚡ 高速',
                }
            ],
        )
        [profile] = self.ok('GET', _PATH)['device_profiles']
        self.assertEqual('schnell ⚡ 高速', profile['description'])

    def test_names_the_duplicate(self) -> None:
        self.create_profile('gold')
        self.assertIn(
            'gold',
            self.refused(
                409, 'POST', _PATH, [{'name': 'gold', 'groups': [base.GROUP]}]
            ),
        )

    def test_deletes_by_names_all_or_none(self) -> None:
        for name in 'abc':
            self.create_profile(name)
        self.assertEqual(
            'Device Profile not found with name=nope',
            self.refused(404, 'DELETE', f'{_PATH}?value=a,nope'),
        )
        self.assertEqual(['a', 'b', 'c'], self.names())
        self.ok('DELETE', f'{_PATH}?value=a,c')
        self.assertEqual(['b'], self.names())

    def test_does_not_delete_what_is_in_use(self) -> None:
        profile = self.create_profile()
        arq = self.create_arq()
        for path in (
            f'{_PATH}/{profile["uuid"]}',
            f'{_PATH}/profile',
            f'{_PATH}?value=profile',
        ):
            self.assertIn(arq, self.refused(409, 'DELETE', path))
        self.assertEqual(
            profile['uuid'],
            self.ok('GET', f'{_PATH}/{profile["uuid"]}')['device_profile'][
                'uuid'
            ],
        )
        self.ok('DELETE', f'/accelerator_requests?arqs={arq}')
        self.ok('DELETE', f'{_PATH}/{profile["uuid"]}')

    def test_does_not_delete_all_for_want_of_names(self) -> None:
        self.create_profile('a')
        for query in ('', '?value='):
            self.refused(400, 'DELETE', f'{_PATH}{query}')
        self.assertEqual(['a'], self.names())

    def test_deletes_by_uuid_or_name_wherever_that_is(self) -> None:
        uuids = {name: self.create_profile(name)['uuid'] for name in 'abcd'}
        for call in (
            f'{_PATH}/{uuids["a"]}',
            f'{_PATH}?value={uuids["b"]}',
            f'{_PATH}/c,d',
        ):
            self.ok('DELETE', call)
        self.assertEqual([], self.names())
        self.assertIn("'a b'", self.refused(400, 'DELETE', f'{_PATH}/a%20b'))

    def test_amounts_that_are_numbers_and_blanks_in_keys(self) -> None:
        self.create_profile(
            'a', {'resources: FPGA': 1, 'trait: CUSTOM_A ': 'required'}
        )
        [profile] = self.ok('GET', _PATH)['device_profiles']
        self.assertEqual(
            [{'resources:FPGA': '1', 'trait:CUSTOM_A': 'required'}],
            profile['groups'],
        )
        for group in (
            {'resources:FPGA': 0},
            {'resources:FPGA': True},
            {'resources:FPGA': 1, 'trait:CUSTOM_A': 1},
            {'resources:FPGA': 1, 'resources: FPGA': 1},
            {'resources:FPGA': 10**30},
        ):
            self.refused(
                400, 'POST', _PATH, [{'name': 'b', 'groups': [group]}]
            )


class UpdateTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        created = self.create_profile('gold')
        self.uuid = created['uuid']
        self.path = f'{_PATH}/{self.uuid}'

    def update(self, body: Any) -> Any:
        return self.ok('PUT', self.path, body, version='2.4')

    def refused_update(self, status: int, body: Any, **kwargs: Any) -> str:
        return self.refused(
            status,
            'PUT',
            kwargs.pop('path', self.path),
            body,
            **{'version': '2.4', **kwargs},
        )

    def test_all_but_the_name(self) -> None:
        before = self.ok('GET', f'{_PATH}?name=gold')['device_profiles'][0]
        group = {'resources:CUSTOM_QAT': '2'}
        shown = self.update({'groups': [group], 'description': 'now QAT'})
        self.assertIsNotNone(shown['updated_at'])
        self.assertEqual(
            {
                **before,
                'groups': [group],
                'description': 'now QAT',
                'updated_at': shown['updated_at'],
            },
            shown,
        )
        self.assertEqual([shown], self.ok('GET', _PATH)['device_profiles'])

    def test_both_shapes_and_what_was_read(self) -> None:
        shown = self.update({'groups': [{'resources:FPGA': 2}]})
        for body in (shown, {'device_profile': shown}):
            self.assertEqual(
                [{'resources:FPGA': '2'}], self.update(body)['groups']
            )

    def test_arqs_keep_their_group(self) -> None:
        self.report_host()
        arqs = self.ok(
            'POST', '/accelerator_requests', {'device_profile_name': 'gold'}
        )['arqs']
        self.update({'groups': [{'resources:CUSTOM_QAT': '2'}]})
        self.bind(*(arq['uuid'] for arq in arqs))
        [shown] = self.ok('GET', '/accelerator_requests')['arqs']
        self.assertEqual('Bound', shown['state'])
        [bound] = self.ok(
            'GET', f'/hosts/{base.HOSTNAME}/instances', roles=base.SERVICE
        )['bindings'][0]['arqs']
        self.assertEqual(base.GROUP, bound['group'])

    def test_what_is_wrong_is_named(self) -> None:
        good = {'groups': [base.GROUP]}
        for culprit, body in (
            ('groups', {}),
            ('groups', {'groups': []}),
            ('CUSTOM_x', {'groups': [{'resources:CUSTOM_x': '1'}]}),
            ('description', {**good, 'description': 1}),
            (base.NOBODY, {**good, 'uuid': base.NOBODY}),
            ('object', [good]),
        ):
            self.assertIn(culprit, self.refused_update(400, body))
        self.assertIn(
            'gold, not silver',
            self.refused_update(409, {**good, 'name': 'silver'}),
        )
        self.assertIn(
            base.NOBODY,
            self.refused_update(404, good, path=f'{_PATH}/{base.NOBODY}'),
        )
        self.refused_update(400, good, path=f'{_PATH}/gold')
        self.refused_update(403, good, roles=base.MANAGER)

    def test_from_2_6_on(self) -> None:
        answer = self.call('PUT', self.path, {}, version='2.3')
        self.assertEqual(
            (405, 'GET, DELETE'), (answer.status_int, answer.headers['Allow'])
        )
