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


from collections.abc import Iterable
import io
import json
import sys
import types
from typing import Any

import ddt
import fixtures
import testtools
import webob

from nova_accel.api.middleware import whole_body


class _GoneClient(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError('uWSGI says so')


def _unread(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """As what refuses a request before it reads it."""
    answer: Iterable[bytes] = webob.Response(status=401)(
        environ, start_response
    )
    return answer


@ddt.ddt
class TestWholeBody(testtools.TestCase):
    def ask(self, length: str | None, body: io.BytesIO) -> webob.Response:
        request = webob.Request.blank('/', method='POST')
        request.environ['wsgi.input'] = body
        if length is not None:
            request.environ['CONTENT_LENGTH'] = length
        return request.get_response(whole_body.WholeBody(_unread))

    @ddt.data(1, 200_000, 8 * 1024 * 1024)
    def test_the_rest_is_read(self, length: int) -> None:
        body = io.BytesIO(b'x' * length)
        self.assertEqual(401, self.ask(str(length), body).status_int)
        self.assertEqual(b'', body.read())

    @ddt.data(None, '', '0', '00')
    def test_nothing_to_read(self, length: str | None) -> None:
        self.assertEqual(401, self.ask(length, io.BytesIO()).status_int)

    def test_what_is_too_long_is_not_read(self) -> None:
        body = _GoneClient()
        self.assertEqual(401, self.ask('17000000', body).status_int)

    def test_a_client_that_has_gone(self) -> None:
        self.assertEqual(401, self.ask('5', _GoneClient()).status_int)

    @ddt.data(
        '-5',
        '+5',
        '5x',
        '1&',
        ' 5',
        '5\n',
        '5, 500',
        '0x5',
        '٥',
        '18446744073709551621',
        '0000000000000005',
    )
    def test_a_length_that_is_no_number(self, length: str) -> None:
        """The application is not asked, and nothing is waited for."""
        answer = self.ask(length, _GoneClient())
        self.assertEqual(400, answer.status_int)
        self.assertIn(
            'Content-Length',
            json.loads(answer.json['error_message'])['description'],
        )


class TestWrapped(testtools.TestCase):
    def served_by_uwsgi(self, **options: Any) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.middleware.whole_body.sys',
                types.SimpleNamespace(
                    modules={
                        **sys.modules,
                        'uwsgi': types.SimpleNamespace(opt=options),
                    }
                ),
            )
        )

    def test_where_no_router_collects_bodies(self) -> None:
        """To read the rest would wait for a slow client."""
        self.assertIs(_unread, whole_body.wrapped(_unread))
        self.served_by_uwsgi(**{'http-socket': b':6666'})
        self.assertIs(_unread, whole_body.wrapped(_unread))

    def test_where_one_does(self) -> None:
        self.served_by_uwsgi(**{'fastrouter-post-buffering': b'131072'})
        self.assertIsInstance(
            whole_body.wrapped(_unread), whole_body.WholeBody
        )
