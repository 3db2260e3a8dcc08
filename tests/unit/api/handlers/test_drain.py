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

from nova_accel.db import draining
from unit.api import base

_PATH = f'/hosts/{base.HOSTNAME}/drain'
_BODY = {'reason': 'new fans', 'until': '2120-11-24T07:00:00+01:00'}
_ANNOUNCED = {**_BODY, 'from': '2120-11-23T07:00:00+01:00'}


class DrainTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()

    def ask(self, method: str, path: str = _PATH, body: Any = None) -> Any:
        return self.ok(method, path, body, version='2.4')

    def latest(self, method: str, path: str = _PATH, body: Any = None) -> Any:
        return self.ok(method, path, body, version='2.5')

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

    def test_it_is_announced(self) -> None:
        found = self.latest('PUT', body=_ANNOUNCED)['drain']
        self.assertEqual(
            {
                'hostname': base.HOSTNAME,
                'reason': 'new fans',
                'from': '2120-11-23T06:00:00+00:00',
                'until': '2120-11-24T06:00:00+00:00',
                'is_overdue': False,
                'requested_at': None,
                'requested_by': 'user',
                'devices': 0,
            },
            found,
        )
        self.assertEqual({'drain': found}, self.latest('GET'))
        self.assertEqual({'drains': [found]}, self.latest('GET', '/drains'))
        [device] = self.ok('GET', '/devices')['devices']
        self.assertEqual('enabled', device['status'])
        # An older client takes each host that is told for a drained one.
        self.assertEqual([], self.drains())
        self.refused(404, 'GET', _PATH, version='2.4')
        self.ask('DELETE')
        self.assertEqual({'drains': []}, self.latest('GET', '/drains'))

    def test_it_begins_at_once(self) -> None:
        for start in (None, '2020-01-01T00:00:00Z'):
            found = self.latest('PUT', body={'reason': 'a', 'from': start})
            self.assertIsNone(found['drain']['from'])
            self.assertIsNotNone(found['drain']['requested_at'])
        self.assertIn(
            'is drained already',
            self.refused(409, 'PUT', _PATH, _ANNOUNCED, version='2.5'),
        )
        [older] = self.drains()
        self.assertNotIn('from', older)
        self.assertNotIn('from', self.ask('GET')['drain'])

    def test_a_beginning_that_is_refused(self) -> None:
        for start, fault in (
            ('tomorrow', 'from'),
            ('2026-11-24T06:00:00', 'from'),
            ('2026-13-24T06:00:00Z', 'from: '),
            ('1999-11-24T06:00:00Z', 'from: the year 1999'),
            (_BODY['until'], 'from: '),
            ('2121-01-01T00:00:00Z', 'from: '),
        ):
            self.assertIn(
                fault,
                self.refused(
                    400, 'PUT', _PATH, {**_BODY, 'from': start}, version='2.5'
                ),
            )
        for start in (None, _ANNOUNCED['from']):
            self.assertIn(
                "'from' was unexpected",
                self.refused(
                    400, 'PUT', _PATH, {**_BODY, 'from': start}, version='2.4'
                ),
            )
        self.assertEqual([], draining.get_all(with_announced=True))

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
