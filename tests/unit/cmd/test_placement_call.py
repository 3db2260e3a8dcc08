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


from collections.abc import Callable
import types
from typing import Any

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
import testtools

from nova_accel import exceptions
from nova_accel.cmd import placement_call
from unit.cmd import made_up_placement


class TestCall(testtools.TestCase):
    """A Placement that answers one thing.

    :ivar asked: method, path and further arguments of each request
    """

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def answer(self, status: int, body: Any = None) -> None:
        def ask(method: str) -> Any:
            def asked(path: str, **further: str) -> Any:
                self.asked.append((method, path, further))
                return made_up_placement.answer(status, body)

            return asked

        self.be_placement(get=ask('get'), delete=ask('delete'))

    def be_placement(self, **methods: Any) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.client.report.report_client_singleton',
                lambda: types.SimpleNamespace(**methods),
            )
        )

    def test_answers(self) -> None:
        self.answer(200, {'a': 1})
        self.assertEqual({'a': 1}, placement_call.call('get', '/a'))
        self.assertEqual([('get', '/a', {'version': '1.22'})], self.asked)
        self.answer(204)
        self.assertIsNone(placement_call.call('delete', '/a'))
        self.assertEqual(('delete', '/a', {}), self.asked[-1])
        self.answer(404)
        for method in ('get', 'delete'):
            self.assertIsNone(placement_call.call(method, '/a'))

    def test_whose_credentials_are_refused(self) -> None:
        def refuse(*_path: str, **_further: str) -> None:
            raise ks_exceptions.Unauthorized

        self.be_placement(get=refuse)
        refusals = [self.refused()]
        self.answer(403)
        refusals.append(self.refused())
        for text in refusals:
            self.assertIn('the user of [placement]', text)

    def refused(self) -> str:
        return str(
            self.assertRaises(
                exceptions.ServiceUnavailable, placement_call.call, 'get', '/a'
            )
        )

    def test_refusals(self) -> None:
        self.answer(409, 'in use')
        fault = self.assertRaises(
            exceptions.Conflict, placement_call.call, 'delete', '/a'
        )
        self.assertIn('in use', str(fault))
        for status in (400, 401, 500, 503):
            self.answer(status)
            fault = self.assertRaises(
                exceptions.ServiceUnavailable, placement_call.call, 'get', '/a'
            )
            self.assertIn(f'{status} to /a', str(fault))

    def test_no_answer(self) -> None:
        def fail(_path: str, **_further: str) -> None:
            raise ks_exceptions.ConnectFailure('refused')

        self.be_placement(get=fail)
        self.assertRaises(
            exceptions.ServiceUnavailable, placement_call.call, 'get', '/a'
        )

    def test_allocations(self) -> None:
        self.answer(200, {'allocations': {'one': {'resources': {'FPGA': 2}}}})
        self.assertEqual(
            {'one': {'FPGA': 2}}, placement_call.allocations('uuid')
        )
        self.assertEqual(
            '/resource_providers/uuid/allocations', self.asked[0][1]
        )
        self.answer(404)
        self.assertEqual({}, placement_call.allocations('uuid'))


class TestChange(testtools.TestCase):
    """A Placement with one number, which has a generation.

    :ivar present: the number and its generation
    :ivar before_put: calls that are made before each change
    """

    def setUp(self) -> None:
        super().setUp()
        self.present: dict[str, int] | None = {'number': 1, 'generation': 0}
        self.before_put: list[Callable[[], None]] = []
        self.puts = 0
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.client.report.report_client_singleton',
                lambda: types.SimpleNamespace(get=self.get, put=self.put),
            )
        )
        self.useFixture(fixtures.MonkeyPatch('time.sleep', lambda _s: None))

    def get(self, path: str, version: str) -> Any:
        return made_up_placement.answer(
            200 if self.present else 404, self.present
        )

    def put(self, path: str, data: dict[str, int], version: str) -> Any:
        self.puts += 1
        if self.before_put:
            self.before_put.pop()()
        assert self.present is not None
        if data['number'] > 9:
            return made_up_placement.answer(
                400 if data['number'] > 99 else 409,
                {'errors': [{'code': 'undefined_code'}]},
            )
        if data['generation'] != self.present['generation']:
            return made_up_placement.answer(
                409, {'errors': [{'code': 'placement.concurrent_update'}]}
            )
        self.present = {**data, 'generation': data['generation'] + 1}
        return made_up_placement.answer(204)

    def add(self, amount: int) -> bool:
        return placement_call.change(
            '/number',
            lambda present: (
                {**present, 'number': present['number'] + amount}
                if amount
                else None
            ),
        )

    def interfere(self) -> None:
        assert self.present is not None
        self.present = {
            'number': self.present['number'] * 2,
            'generation': self.present['generation'] + 1,
        }

    def test_it_is_changed(self) -> None:
        self.assertTrue(self.add(1))
        self.assertEqual({'number': 2, 'generation': 1}, self.present)

    def test_it_is_right_already(self) -> None:
        self.assertFalse(self.add(0))
        self.assertEqual(0, self.puts)

    def test_there_is_no_such_thing(self) -> None:
        self.present = None
        self.assertFalse(self.add(1))
        self.assertEqual(0, self.puts)

    def test_somebody_else_is_first(self) -> None:
        self.before_put = [self.interfere] * 3
        self.assertTrue(self.add(1))
        self.assertEqual({'number': 9, 'generation': 4}, self.present)

    def test_somebody_else_is_always_first(self) -> None:
        self.before_put = [self.interfere] * 100
        self.assertRaises(exceptions.Conflict, self.add, 1)
        self.assertLess(self.puts, 100)

    def test_it_is_refused(self) -> None:
        for puts, amount in enumerate((10, 100), 1):
            fault = self.assertRaises(exceptions.Conflict, self.add, amount)
            self.assertIn('does not put /number', str(fault))
            self.assertIn('undefined_code', str(fault))
            self.assertEqual(puts, self.puts)
