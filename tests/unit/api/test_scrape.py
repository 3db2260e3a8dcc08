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

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api import scrape
from nova_accel.metrics import exposition
from nova_accel.testing import database

ALLOWED = '192.0.2.0/28', '2001:db8::7'


class ScrapeTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.readings = 0

    def read(self) -> bytes:
        self.readings += 1
        return b'nova_accel_hosts 1\n'

    def ask(
        self,
        peer: str = '192.0.2.7',
        path: str = '/',
        allowed: tuple[str, ...] = ALLOWED,
        headers: dict[str, str] | None = None,
        method: str = 'GET',
    ) -> webob.Response:
        application = scrape.Scrape(
            scrape.networks(allowed), exposition.Kept(self.read, 1000, 1)
        )
        return webob.Request.blank(
            path,
            {'REMOTE_ADDR': peer},
            headers=headers or {},
            method=method,
        ).get_response(application)

    def test_allowed(self) -> None:
        for peer in (
            '192.0.2.7',
            '2001:db8::7',
            # As a socket for both versions of IP names it.
            '::ffff:192.0.2.7',
        ):
            answer = self.ask(peer)
            self.assertEqual(200, answer.status_int, peer)
            self.assertEqual(b'nova_accel_hosts 1\n', answer.body)
            self.assertEqual(
                'text/plain; version=0.0.4; charset=utf-8',
                answer.headers['Content-Type'],
            )
        self.assertEqual(b'', self.ask(method='HEAD').body)

    def test_other_addresses_are_refused(self) -> None:
        for peer in (
            '192.0.2.16',
            '2001:db8::8',
            '::ffff:192.0.2.16',
            '127.0.0.1',
            # A Unix socket's.
            '',
            'unix:',
            '192.0.2.7, 192.0.2.16',
        ):
            answer = self.ask(peer)
            self.assertEqual(403, answer.status_int, peer)
            self.assertNotIn(b'nova_accel_hosts', answer.body)
        self.assertEqual(0, self.readings)

    def test_no_header_changes_the_address(self) -> None:
        for name in (
            'X-Forwarded-For',
            'X-Forwarded-Host',
            'X-Forwarded-Anything',
            'Forwarded',
            'X-Real-IP',
            'Via',
            'Client-IP',
        ):
            for peer in ('192.0.2.16', '192.0.2.7'):
                answer = self.ask(peer, headers={name: '192.0.2.7'})
                self.assertEqual(403, answer.status_int, (name, peer))
        self.assertEqual(0, self.readings)

    def test_off(self) -> None:
        for peer in ('192.0.2.7', '127.0.0.1'):
            self.assertEqual(404, self.ask(peer, allowed=()).status_int)

    def test_nothing_is_below_it(self) -> None:
        self.assertEqual(404, self.ask(path='/more').status_int)

    def test_nothing_but_reading(self) -> None:
        answer = self.ask(method='POST')
        self.assertEqual(405, answer.status_int)
        self.assertEqual('GET, HEAD', answer.headers['Allow'])

    def test_no_database(self) -> None:
        def refuse() -> bytes:
            raise exceptions.ServiceUnavailable('db-7 is down')

        self.read = refuse
        answer = self.ask()
        self.assertEqual(503, answer.status_int)
        self.assertNotIn('db-7', answer.text)


class FactoryTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(database.Database())

    def allow(self, *networks: str) -> None:
        conf.CONF.set_override(
            'metrics_allowed_networks', list(networks), 'nova_accel'
        )
        self.addCleanup(
            conf.CONF.clear_override, 'metrics_allowed_networks', 'nova_accel'
        )

    def ask(self) -> int:
        return (
            webob.Request.blank('/', {'REMOTE_ADDR': '127.0.0.1'})
            .get_response(scrape.factory({}))
            .status_int
        )

    def test_off_by_default(self) -> None:
        self.assertEqual(404, self.ask())

    def test_on(self) -> None:
        self.allow('127.0.0.0/8')
        self.assertEqual(200, self.ask())

    def test_a_wrong_network_is_named(self) -> None:
        for wrong in ('192.0.2.7/24', 'monitoring.example'):
            self.allow('127.0.0.1', wrong)
            fault = self.assertRaises(
                exceptions.ConfigurationError, scrape.factory, {}
            )
            self.assertIn('metrics_allowed_networks', str(fault))
            self.assertIn(wrong, str(fault))
