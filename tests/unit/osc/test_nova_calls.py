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

from osc_lib import exceptions
import requests
import testtools

from nova_accel.osc import nova_calls


class _Client:
    """An adapter to an API that gives one answer."""

    def __init__(self, status: int, text: str) -> None:
        self.response = requests.Response()
        self.response.status_code = status
        self.response._content = text.encode()
        self.asked: dict[str, Any] = {}

    def request(
        self, path: str, method: str, **arguments: Any
    ) -> requests.Response:
        self.asked = {'path': path, 'method': method, **arguments}
        return self.response


class TestCall(testtools.TestCase):
    def call(self, status: int, text: str) -> Any:
        self.client = _Client(status, text)
        return nova_calls.call(
            self.client,  # type: ignore[arg-type]
            'GET',
            '/servers/a',
        )

    def test_answer(self) -> None:
        self.assertEqual({'a': 1}, self.call(200, '{"a": 1}'))
        self.assertEqual('2.84', self.client.asked['microversion'])
        # No request is waited for without an end.
        self.assertEqual(60, self.client.asked['timeout'])
        self.assertIsNone(self.call(202, ''))

    def test_refused(self) -> None:
        for status, fault in (
            (404, nova_calls.NotFound),
            (409, nova_calls.Refused),
            (403, nova_calls.Refused),
        ):
            error = self.assertRaises(
                fault,
                self.call,
                status,
                '{"conflictingRequest": {"message": "not\\nso\\u001b", '
                '"code": 409}}',
            )
            self.assertEqual('not so\\x1b', str(error))

    def test_in_trouble(self) -> None:
        for text in ('{"computeFault": {"message": "oops"}}', 'oops', '[]'):
            error = self.assertRaises(
                exceptions.CommandError, self.call, 503, text
            )
            self.assertNotIsInstance(error, nova_calls.Refused)
            self.assertIn('GET /servers/a with 503', str(error))

    def test_no_json(self) -> None:
        error = self.assertRaises(
            exceptions.CommandError, self.call, 200, '<html>'
        )
        self.assertIn('without JSON', str(error))


class TestWords(testtools.TestCase):
    def test_they_are_short_and_printable(self) -> None:
        words = nova_calls.words('a\n\x1b[2J' + 1000 * 'b')
        self.assertTrue(words.isprintable())
        self.assertLess(len(words), 600)
