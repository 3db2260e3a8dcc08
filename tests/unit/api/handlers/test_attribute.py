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

_DEPLOYABLE = base.DEPLOYABLE
_PATH = '/attributes'


class AttributeTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()

    def attributes(self, query: str = '') -> dict[str, str]:
        return {
            row['key']: row['value']
            for row in self.ok('GET', f'{_PATH}{query}', roles=base.ADMIN)[
                'attributes'
            ]
        }

    def create(self, **fields: Any) -> Any:
        return self.ok(
            'POST',
            _PATH,
            {'deployable_id': 1, 'key': 'rack', 'value': '7', **fields},
        )

    def test_what_hosts_report_and_what_operators_note(self) -> None:
        reported = {
            **{
                f'traits{number}': trait
                for number, trait in enumerate(base.TRAITS, 1)
            },
            'rc': 'FPGA',
            'firmware': '1.2.3',
        }
        self.assertEqual(reported, self.attributes())
        self.create()
        self.assertEqual({**reported, 'rack': '7'}, self.attributes())
        for query, found in (
            ('?key=rack', {'rack': '7'}),
            ('?key=rc', {'rc': 'FPGA'}),
            ('?deployable_id=1&key=rack', {'rack': '7'}),
            (f'?deployable_id={_DEPLOYABLE}&key=rack', {'rack': '7'}),
            ('?deployable_id=2', {}),
            ('?key=nope', {}),
            (f'?deployable_id={base.NOBODY}', {}),
        ):
            self.assertEqual(found, self.attributes(query), query)

    def test_each_can_be_shown(self) -> None:
        self.create()
        for row in self.ok('GET', _PATH)['attributes']:
            self.assertEqual(
                row, self.ok('GET', f'{_PATH}/{row["uuid"]}', roles=base.ADMIN)
            )
        self.assertEqual(
            f'Attribute not found with uuid={base.NOBODY}',
            self.refused(404, 'GET', f'{_PATH}/{base.NOBODY}'),
        )

    def test_bodies_of_all_clients(self) -> None:
        for number, body in enumerate(
            (
                {'deployable_id': 1},
                {'deployable_id': '1'},
                {'deployable_id': _DEPLOYABLE},
            )
        ):
            for wrapped in (False, True):
                body = {**body, 'key': f'{number}{wrapped}', 'value': ''}
                created = self.ok(
                    'POST', _PATH, {'attribute': body} if wrapped else body
                )
                self.assertEqual(
                    (1, body['key'], ''),
                    (
                        created['deployable_id'],
                        created['key'],
                        created['value'],
                    ),
                )

    def test_it_is_in_the_deployable(self) -> None:
        self.create()
        [deployable] = self.ok('GET', '/deployables')['deployables']
        self.assertIn(
            '{"rc": "FPGA"}, {"rack": "7"}]', deployable['attributes_list']
        )

    def test_bad_bodies_name_the_culprit(self) -> None:
        good = {'deployable_id': 1, 'key': 'rack', 'value': '7'}
        for culprit, body in (
            ('deployable_id', {'key': 'a', 'value': 'b'}),
            ('deployable_id', {**good, 'deployable_id': 'x'}),
            ('deployable_id', {**good, 'deployable_id': 2**31}),
            ('deployable_id', {**good, 'deployable_id': -1}),
            ('deployable_id', {**good, 'deployable_id': True}),
            ('key', {**good, 'key': ''}),
            ('key', {**good, 'key': 'a' * 256}),
            ('value', {**good, 'value': None}),
            ('value', {**good, 'value': 'a' * 4096}),
            ('frob', {**good, 'frob': 1}),
            ('attribute', {**good, 'attribute': good}),
            ('object', [good]),
        ):
            self.assertIn(culprit, self.refused(400, 'POST', _PATH, body))
        for query in ('deployable_id=x', 'deployable_id=-1', 'name=a'):
            self.assertIn(
                query.partition('=')[0],
                self.refused(400, 'GET', f'{_PATH}?{query}'),
            )

    def test_of_no_deployable(self) -> None:
        for deployable, named in (
            (7, 'id=7'),
            (base.NOBODY, f'uuid={base.NOBODY}'),
        ):
            self.assertEqual(
                f'Deployable not found with {named}',
                self.refused(
                    404,
                    'POST',
                    _PATH,
                    {'deployable_id': deployable, 'key': 'a', 'value': 'b'},
                ),
            )

    def test_what_is_there_is_not_replaced(self) -> None:
        self.create()
        for key in ('rack', 'rc', 'firmware'):
            self.assertIn(
                key,
                self.refused(
                    409,
                    'POST',
                    _PATH,
                    {'deployable_id': 1, 'key': key, 'value': 'b'},
                ),
            )

    def test_what_a_host_reports_is_not_deleted(self) -> None:
        before = self.attributes()
        for row in self.ok('GET', _PATH)['attributes']:
            self.assertIn(
                row['uuid'],
                self.refused(409, 'DELETE', f'{_PATH}/{row["uuid"]}'),
            )
        uuid = self.create()['uuid']
        self.ok('DELETE', f'{_PATH}/{uuid}')
        self.assertEqual(
            f'Attribute not found with uuid={uuid}',
            self.refused(404, 'DELETE', f'{_PATH}/{uuid}'),
        )
        self.assertEqual(before, self.attributes())
