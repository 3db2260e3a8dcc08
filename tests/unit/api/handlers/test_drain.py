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

_PATH = f'/hosts/{base.HOSTNAME}/drain'
_BODY = {'reason': 'new fans', 'until': '2120-11-24T07:00:00+01:00'}


class DrainTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()

    def ask(self, method: str, path: str = _PATH, body: Any = None) -> Any:
        return self.ok(method, path, body, version='2.4')

    def drains(self) -> list[dict[str, Any]]:
        found = self.ask('GET', '/drains')['drains']
        assert isinstance(found, list)
        return found

    def test_from_begin_to_end(self) -> None:
        self.assertEqual([], self.drains())
        begun = self.ask('PUT', body=_BODY)['drain']
        self.assertEqual({'drain': begun}, self.ask('GET'))
        self.assertEqual([begun], self.drains())
        self.assertIsNotNone(begun.pop('requested_at'))
        self.assertEqual(
            {
                'hostname': base.HOSTNAME,
                'reason': 'new fans',
                'until': '2120-11-24T06:00:00+00:00',
                'is_overdue': False,
                'requested_by': 'user',
                'devices': 1,
            },
            begun,
        )
        [device] = self.ok('GET', '/devices')['devices']
        self.assertEqual('maintaining', device['status'])
        self.assertIsNone(self.ask('DELETE'))
        self.assertEqual([], self.drains())
        [device] = self.ok('GET', '/devices')['devices']
        self.assertEqual('enabled', device['status'])

    def test_again_with_another_reason(self) -> None:
        first = self.ask('PUT', body=_BODY)['drain']
        again = self.ask('PUT', body={'reason': 'more fans'})['drain']
        self.assertEqual(
            {**first, 'reason': 'more fans', 'until': None}, again
        )
        overdue = self.ask(
            'PUT', body={'reason': 'x', 'until': '2020-01-01T00:00:00Z'}
        )['drain']
        self.assertIs(True, overdue['is_overdue'])

    def test_the_host_is_told(self) -> None:
        self.ask('PUT', body=_BODY)
        self.assertEqual(
            [base.DEVICE], self.report_host()['orders']['disabled']
        )

    def test_refused(self) -> None:
        for body in (
            {},
            {'reason': ''},
            {'reason': 'a' * 1024},
            {'reason': 'a\0'},
            {'reason': 'a', 'until': 'tomorrow'},
            {'reason': 'a', 'until': '2026-11-24T06:00:00'},
            {'reason': 'a', 'until': '2026-13-24T06:00:00Z'},
            {'reason': 'a', 'more': 'b'},
        ):
            self.refused(400, 'PUT', _PATH, body, version='2.4')
        self.refused(400, 'PUT', '/hosts/a%20b/drain', _BODY, version='2.4')
        self.assertEqual([], self.drains())

    def test_hosts_that_are_not_drained(self) -> None:
        for method, status in (('GET', 404), ('DELETE', 409)):
            self.assertEqual(
                f'Host {base.HOSTNAME} is not drained',
                self.refused(status, method, _PATH, version='2.4'),
            )

    def test_unknown_hosts(self) -> None:
        for method, body in (('GET', None), ('PUT', _BODY), ('DELETE', None)):
            self.assertIn(
                'nobody not found',
                self.refused(
                    404, method, '/hosts/nobody/drain', body, version='2.4'
                ),
            )

    def test_for_administrators_only(self) -> None:
        for roles in (base.MANAGER, base.SERVICE):
            for method, path, body in (
                ('GET', '/drains', None),
                ('GET', _PATH, None),
                ('PUT', _PATH, _BODY),
                ('DELETE', _PATH, None),
            ):
                answer = self.call(
                    method, path, body, roles=roles, version='2.4'
                )
                self.assertEqual(403, answer.status_int)
