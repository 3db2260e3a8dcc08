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

from urllib import parse

from hypothesis import given
from hypothesis import strategies as st
import testtools
import webob
import webob.dec

from nova_accel.api.middleware import clean_path


class TestCleanPath(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        #: The paths that reach what logs them.
        self.logged: list[str] = []

    def ask(self, path: bytes) -> webob.Response:
        return webob.Request.blank(
            '/' + parse.quote_from_bytes(path)
        ).get_response(self.served)

    def of_server(self, **environ: str) -> webob.Response:
        """The answer to what a server says of a request."""
        request = webob.Request.blank('/')
        del request.environ['PATH_INFO']
        request.environ.update(environ)
        return request.get_response(self.served)

    @property
    def served(self) -> clean_path.CleanPath:
        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            self.logged.append(request.environ.get('PATH_INFO', ''))
            return webob.Response()

        return clean_path.factory({})(application)

    def test_good_ones(self) -> None:
        for path in (b'', b'devices', 'zu heiß'.encode(), b'\xff'):
            self.assertEqual(200, self.ask(path).status_int)
        self.assertEqual(4, len(self.logged))

    def test_those_that_could_forge_lines(self) -> None:
        for path in (
            b'a\n2026-01-01 INFO all is well',
            b'\r',
            b'\x1b[2J',
            '\u2028'.encode(),
            '\x85'.encode(),
            b'a\0',
        ):
            answer = self.ask(path)
            self.assertEqual(400, answer.status_int)
            self.assertIn('control character', answer.text)
        self.assertEqual([], self.logged)

    def test_what_is_no_path(self) -> None:
        for path in ('*', 'controller:443', 'a/b', ' /'):
            answer = self.of_server(PATH_INFO=path, REQUEST_URI=path)
            self.assertEqual(400, answer.status_int)
            self.assertIn('does not begin', answer.text)
        self.assertEqual([], self.logged)
        self.assertEqual(200, self.of_server(PATH_INFO='').status_int)

    def test_a_long_url(self) -> None:
        most = clean_path.MAX_URL
        for path, query, status in (
            ('/devices', 'a' * (most - 10), 200),
            ('/devices', 'a' * most, 414),
            ('/' + 'a' * (most - 1), '', 200),
            ('/' + 'a' * most, '', 414),
            # Which are longer as they are sent.
            ('/' + ' ' * (most // 2), '', 414),
        ):
            url = parse.quote(path) + ('?' + query if query else '')
            answer = self.of_server(
                PATH_INFO=path, QUERY_STRING=query, REQUEST_URI=url
            )
            self.assertEqual(status, answer.status_int, url[:20])

    def test_a_query_that_the_server_has_left_out(self) -> None:
        """As uWSGI does if its buffer has room for the URL, but not twice."""
        for environ in (
            {'PATH_INFO': '/devices', 'REQUEST_URI': '/devices?type=FPGA'},
            {'REQUEST_URI': '/device_profiles/gold'},
        ):
            answer = self.of_server(**environ)
            self.assertEqual(414, answer.status_int)
            self.assertIn('can read', answer.text)
        request = webob.Request.blank('/')
        request.environ['REQUEST_URI'] = '/'
        del request.environ['QUERY_STRING']
        self.assertEqual(414, request.get_response(self.served).status_int)
        self.assertEqual([], self.logged)

    def test_a_server_that_writes_the_url_anew(self) -> None:
        for url, query in (
            ('/old', 'type=FPGA'),
            ('/old?', ''),
            ('/devices?kind=FPGA', 'type=FPGA'),
            ('http://controller/devices', ''),
        ):
            answer = self.of_server(
                PATH_INFO='/devices', QUERY_STRING=query, REQUEST_URI=url
            )
            self.assertEqual(200, answer.status_int, url)
        self.assertEqual(200, self.of_server(PATH_INFO='/devices').status_int)

    @given(st.binary())
    def test_what_is_logged_is_one_line(self, path: bytes) -> None:
        self.ask(path)
        for logged in self.logged:
            text = logged.encode('latin-1').decode('utf-8', 'replace')
            self.assertEqual([text], text.splitlines())
