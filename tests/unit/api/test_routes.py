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

"""What the tables say of a call is what the API does."""

import re

import fixtures

from nova_accel.api import routes
from nova_accel.api.http import policy
from unit.api import base

_CALLS = [
    (path, method, route)
    for path, methods in routes.API.items()
    for method, route in methods.items()
]


def _filled(path: str) -> str:
    return re.sub('{[^}]*}', base.NOBODY, path.replace('{role}', 'active'))


class TablesTest(base.ApiTestCase):
    def test_each_call_asks_its_rules_first(self) -> None:
        asked: list[str] = []

        def allows(_context: object, rule: str, *_host: object) -> bool:
            asked.append(rule)
            return False

        self.useFixture(fixtures.MockPatchObject(policy, 'allows', allows))
        for path, method, route in _CALLS:
            asked.clear()
            answer = self.call(method, _filled(path), version='latest')
            self.assertIn(answer.status_int, (403, 422), f'{method} {path}')
            expected = [route.rule, route.or_rule]
            if route.or_rule is None:
                expected.pop()
            self.assertEqual(expected, asked[: len(expected)])

    def test_each_of_two_rules_is_enough(self) -> None:
        for path, method, route in _CALLS:
            for enough in filter(None, (route.rule, route.or_rule)):
                with fixtures.MockPatchObject(
                    policy,
                    'allows',
                    lambda _context, rule, *_host, enough=enough: (
                        rule == enough
                    ),
                ):
                    answer = self.call(method, _filled(path), version='latest')
                self.assertNotIn(answer.status_int, (403, 422), answer.text)

    def test_a_call_that_is_newer_than_the_request(self) -> None:
        for path, method, route in _CALLS:
            if route.since == '2.0':
                continue
            version = f'2.{int(route.since[2:]) - 1}'
            answer = self.call(method, _filled(path), version=version)
            self.assertEqual(
                405 if route.is_hidden_before else 406, answer.status_int
            )
            if not route.is_hidden_before:
                self.assertIn(
                    'The minimal required API version should be '
                    f'{route.since}',
                    answer.text,
                )
            answer = self.call(method, _filled(path), version=route.since)
            self.assertNotIn(answer.status_int, (405, 406))

    def test_a_method_that_older_requests_do_not_see(self) -> None:
        answer = self.call('PUT', '/device_profiles/a', version='2.3')
        self.assertEqual('GET, DELETE', answer.headers['Allow'])

    def test_arguments(self) -> None:
        """Each is known from its microversion on."""
        tried = 0
        for path, method, route in _CALLS:
            if not route.query or '{' in path:
                continue
            for name, version, is_known in (
                *((name, 'latest', True) for name in route.query),
                *(
                    (name, f'2.{int(argument.since[2:]) - 1}', False)
                    for name, argument in route.query.items()
                    if argument.since > route.since
                ),
                ('unknown', 'latest', False),
            ):
                answer = self.call(
                    method, f'{path}?{name}=1', token=True, version=version
                )
                self.assertEqual(
                    not is_known,
                    'Unknown argument' in answer.text,
                    f'{method} {path}?{name} {version}',
                )
                tried += 1
        self.assertGreater(tried, 50)

    def test_a_query_that_is_not_looked_at(self) -> None:
        for path, method, route in _CALLS:
            if route.query:
                continue
            answer = self.call(
                method, f'{_filled(path)}?unknown=1', version='latest'
            )
            self.assertNotIn('Unknown argument', answer.text)

    def test_bodies_that_are_too_long(self) -> None:
        for path, method, route in _CALLS:
            if route.body is None:
                continue
            for length, is_refused in (
                (route.max_body_bytes, False),
                (route.max_body_bytes + 1, True),
            ):
                answer = self.call(
                    method,
                    _filled(path),
                    raw=b' ' * length,
                    roles=base.ADMIN + base.SERVICE,
                    token=True,
                    version='latest',
                )
                self.assertEqual(
                    is_refused,
                    answer.status_int == 413,
                    f'{method} {path} {length}',
                )
