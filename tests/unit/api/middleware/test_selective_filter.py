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
import fixtures
import testtools
import webob
import webob.dec

from nova_accel import conf
from nova_accel.api.middleware import selective_filter

CONF = conf.CONF


class SelectiveFilterTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())

    def ask(
        self, filtered: object, method: str = 'GET', **headers: str
    ) -> webob.Response:
        return webob.Request.blank(
            '/devices',
            method=method,
            headers={
                name.replace('_', '-'): value
                for name, value in headers.items()
            },
        ).get_response(filtered)


class TestBrowsers(SelectiveFilterTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.filtered = selective_filter.browsers_factory(
            {}, allowed_origin='https://horizon.example.com'
        )(webob.dec.wsgify(lambda _request: webob.Response(status=405)))

    def test_a_browser_gets_what_the_filter_adds(self) -> None:
        answer = self.ask(self.filtered, Origin='https://horizon.example.com')
        self.assertEqual(
            'https://horizon.example.com',
            answer.headers['Access-Control-Allow-Origin'],
        )

    def test_preflight(self) -> None:
        answer = self.ask(self.filtered, 'OPTIONS')
        self.assertEqual(200, answer.status_int)

    def test_another_one_gets_the_answer_as_it_is(self) -> None:
        answer = self.ask(self.filtered)
        self.assertEqual(405, answer.status_int)
        self.assertNotIn('Access-Control-Allow-Origin', answer.headers)


class TestProxies(SelectiveFilterTestCase):
    def url(self, **headers: str) -> str:
        filtered = selective_filter.proxies_factory(
            {}, enable_proxy_headers_parsing='true'
        )(
            webob.dec.wsgify(
                lambda request: webob.Response(text=request.application_url)
            )
        )
        self.addCleanup(
            CONF.clear_override,
            'enable_proxy_headers_parsing',
            group='oslo_middleware',
        )
        return self.ask(filtered, **headers).text

    def test_believes_a_proxy(self) -> None:
        for headers, url in (
            ({}, 'http://localhost'),
            ({'X_Forwarded_Proto': 'https'}, 'https://localhost:80'),
            ({'X_Forwarded_Host': 'cloud'}, 'http://cloud'),
            ({'X_Forwarded_Prefix': '/here'}, 'http://localhost/here'),
            ({'Forwarded': 'proto=https;host=cloud'}, 'https://cloud'),
        ):
            self.assertEqual(url, self.url(**headers))

    def test_believes_nobody_unless_it_is_told_to(self) -> None:
        filtered = selective_filter.proxies_factory({})(
            webob.dec.wsgify(
                lambda request: webob.Response(text=request.application_url)
            )
        )
        self.assertEqual(
            'http://localhost',
            self.ask(filtered, X_Forwarded_Host='cloud').text,
        )
