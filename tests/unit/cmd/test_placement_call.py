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
import types
from typing import Any

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
import testtools

from nova_accel import exceptions
from nova_accel.cmd import placement_call


class TestCall(testtools.TestCase):
    """A Placement that answers one thing.

    :ivar asked: method, path and further arguments of each request
    """

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def answer(self, status: int, body: Any = None) -> None:
        text = '' if body is None else json.dumps(body)

        def ask(method: str) -> Any:
            def asked(path: str, **further: str) -> Any:
                self.asked.append((method, path, further))
                return types.SimpleNamespace(
                    status_code=status,
                    text=text,
                    content=text.encode(),
                    json=lambda: json.loads(text),
                )

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
