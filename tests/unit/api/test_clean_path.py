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

from nova_accel.api import clean_path


class TestCleanPath(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        #: The paths that reach what logs them.
        self.logged: list[str] = []

    def ask(self, path: bytes) -> webob.Response:

        @webob.dec.wsgify
        def application(request: webob.Request) -> webob.Response:
            self.logged.append(request.environ['PATH_INFO'])
            return webob.Response()

        return webob.Request.blank(
            '/' + parse.quote_from_bytes(path)
        ).get_response(clean_path.factory({})(application))

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

    @given(st.binary())
    def test_what_is_logged_is_one_line(self, path: bytes) -> None:
        self.ask(path)
        for logged in self.logged:
            text = logged.encode('latin-1').decode('utf-8', 'replace')
            self.assertEqual([text], text.splitlines())
