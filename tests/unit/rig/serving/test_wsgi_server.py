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
from collections.abc import Iterable
from concurrent import futures
import threading
from typing import Any

import requests
import testtools

from rig.serving import wsgi_server


def say(text: bytes) -> Callable[[Any, Any], Iterable[bytes]]:
    def application(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response('200 OK', [('Content-Type', 'text/plain')])
        return [text, environ['PATH_INFO'].encode()]

    return application


class TestWsgiServer(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.server = self.useFixture(wsgi_server.WsgiServer())

    def get(self, path: str) -> str:
        return requests.get(self.server.url + path, timeout=10).text

    def test_prefixes(self) -> None:
        self.assertEqual(
            self.server.url + '/a', self.server.mount('/a', say(b'A'))
        )
        self.assertEqual(self.server.url, self.server.mount('/', say(b'B')))
        self.assertEqual('A/x', self.get('/a/x'))
        self.assertEqual('B/ab/x', self.get('/ab/x'))
        self.server.unmount('/a')
        self.assertEqual('B/a/x', self.get('/a/x'))

    def test_requests_may_wait_for_each_other(self) -> None:
        meeting = threading.Barrier(10, timeout=10)

        def application(environ: Any, start_response: Any) -> Iterable[bytes]:
            meeting.wait()
            return say(b'met')(environ, start_response)

        self.server.mount('/', application)
        with futures.ThreadPoolExecutor(max_workers=10) as executor:
            asked = [executor.submit(self.get, '/') for _ in range(10)]
            self.assertEqual(
                ['met/'] * 10, [future.result() for future in asked]
            )

    def test_cleanup_frees_the_port(self) -> None:
        with wsgi_server.WsgiServer() as server:
            port = int(server.url.rpartition(':')[2])
            self.assertEqual(
                404, requests.get(server.url, timeout=10).status_code
            )
        self.assertRaises(
            requests.ConnectionError, requests.get, server.url, timeout=10
        )
        self.assertEqual(
            server.url, self.useFixture(wsgi_server.WsgiServer(port)).url
        )
