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
from typing import Any

import fixtures
from osc_lib import exceptions
import requests
import testtools
import webob

from nova_accel.api.http import warning
from nova_accel.osc import accelerator_calls
from nova_accel.testing import reports
from unit.osc import base


class TestCall(base.CommandTestCase):
    def call(self, *arguments: str) -> Any:
        return accelerator_calls.call(self.api.adapter, *arguments)

    def test_answer(self) -> None:
        reports.SimulatedHost('compute-1').report()
        found = self.call('GET', '/devices')['devices']
        self.assertEqual({'compute-1'}, {each['hostname'] for each in found})
        self.assertIsNone(
            self.call('POST', f'/devices/{found[0]["uuid"]}/disable')
        )

    def test_warnings(self) -> None:
        told: list[str] = []
        texts = ['say "a\\b", and', 'go', '299 nova_accel "x"']

        def answer(*_arguments: object) -> webob.Response:
            response = webob.Response(status=204, content_type=None)
            warning.add(response, texts)
            return response

        reports.SimulatedHost('compute-1').report()
        uuid = self.call('GET', '/devices')['devices'][0]['uuid']
        with fixtures.MockPatch(
            'nova_accel.api.handlers.device._set_status', answer
        ):
            accelerator_calls.call(
                self.api.adapter,
                'POST',
                f'/devices/{uuid}/disable',
                told.append,
            )
        self.assertEqual(texts, told)

    def test_refusal_of_a_handler(self) -> None:
        error = self.assertRaises(
            accelerator_calls.NotFound,
            self.call,
            'GET',
            '/device_profiles/gold',
        )
        self.assertIn('GET /device_profiles/gold with 404: ', str(error))
        self.assertNotIn('{', str(error))

    def test_an_api_that_is_older_than_the_command(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.osc.accelerator_calls._MICROVERSION', '2.99'
            )
        )
        error = self.assertRaises(
            exceptions.CommandError, self.call, 'GET', '/devices'
        )
        self.assertIn('Version 2.99 was requested', str(error))


class _Client:
    """An adapter to an API that answers one thing after another.

    :ivar asked: path and query of each request
    """

    def __init__(self, *answers: tuple[int, str]) -> None:
        self._answers = iter(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def request(
        self, path: str, method: str, **arguments: Any
    ) -> requests.Response:
        self.asked.append((path, dict(arguments.get('params', {}))))
        response = requests.Response()
        response.status_code, text = next(self._answers)
        response._content = text.encode()
        return response


def _page(names: list[str], href: str | None) -> tuple[int, str]:
    links = [] if href is None else [{'rel': 'next', 'href': href}]
    return 200, json.dumps({'things': names, 'things_links': links})


class TestStrangeAnswers(testtools.TestCase):
    def test_words_of_a_proxy(self) -> None:
        error = self.assertRaises(
            exceptions.CommandError,
            accelerator_calls.call,
            _Client((502, 'Bad\n\x1b' * 9999)),
            'GET',
            '/devices',
        )
        self.assertIn('with 502: Bad', str(error))
        self.assertLess(len(str(error)), 8100)
        self.assertTrue(str(error).isprintable())

    def test_no_words_at_all(self) -> None:
        for text in ('', '[]', '{"error_message": 1}'):
            self.assertRaises(
                exceptions.CommandError,
                accelerator_calls.call,
                _Client((500, text)),
                'GET',
                '/devices',
            )

    def test_no_json(self) -> None:
        error = self.assertRaises(
            exceptions.CommandError,
            accelerator_calls.call,
            _Client((200, '<html>')),
            'GET',
            '/devices',
        )
        self.assertIn('GET /devices', str(error))


class TestPages(testtools.TestCase):
    def pages(self, client: _Client) -> list[list[str]]:
        return [
            *accelerator_calls.pages(client, '/things', 'things', {'a': 'b'})
        ]

    def test_all(self) -> None:
        client = _Client(
            _page(['1'], 'http://nowhere/things?a=b&marker=h%26st1'),
            _page(['2'], None),
        )
        self.assertEqual([['1'], ['2']], self.pages(client))
        self.assertEqual(
            [
                ('/things', {'a': 'b'}),
                ('/things', {'a': 'b', 'marker': 'h&st1'}),
            ],
            client.asked,
        )

    def test_without_an_end(self) -> None:
        client = _Client(*[_page(['1'], 'things?marker=1')] * 3)
        error = self.assertRaises(exceptions.CommandError, self.pages, client)
        self.assertIn('repeats the page', str(error))

    def test_a_list_is_missing(self) -> None:
        self.assertRaises(
            exceptions.CommandError, self.pages, _Client((200, '{}'))
        )
