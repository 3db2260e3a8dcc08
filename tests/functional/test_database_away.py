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

"""nova-scheduler while the database of accelerators gives no answer.

A server without accelerators never notices. One with accelerators is refused
soon, with the reason.
"""

import socket
import threading
import time

from db import relay
import fixtures
from nova.scheduler import manager

from functional import base
from nova_accel import conf
from nova_accel.db.sql import engine

CONF = conf.CONF

#: Seconds for a request that asks for accelerators: the deadline of
#: nova-scheduler and an answer that does not come, on a busy machine.
_SOON_S = 20


class AwayTestCase(base.AcceleratorTestCase):
    """A host with accelerators, and a database that goes away.

    :ivar reads: how often nova-scheduler has tried to use the database
    :ivar longest: the seconds of its longest decision
    """

    hosts = ()

    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        self.accelerated = self.create_accel_flavor('fpga')
        self.plain = self._create_flavor(name='plain')
        self.reads = 0
        self.longest = 0.0
        self.decides = threading.local()
        for name in ('reader', 'writer'):
            self.count(name, getattr(engine, name))
        self.measure(manager.SchedulerManager.select_destinations)

    def count(self, name, function):
        def counted(*args, **kwargs):
            self.reads += getattr(self.decides, 'now', False)
            return function(*args, **kwargs)

        self.useFixture(fixtures.MockPatchObject(engine, name, counted))

    def measure(self, function):
        def measured(*args, **kwargs):
            self.decides.now = True
            begin = time.monotonic()
            try:
                return function(*args, **kwargs)
            finally:
                self.longest = max(self.longest, time.monotonic() - begin)
                self.decides.now = False

        self.useFixture(
            fixtures.MockPatchObject(
                manager.SchedulerManager, 'select_destinations', measured
            )
        )

    def use(self, url):
        """Have another database, of a server on this machine."""
        CONF.set_override('connection', url, 'nova_accel_database')
        engine.forget()
        # Its tables are not there when the test ends.
        self.addCleanup(engine.forget)

    def assert_plain_servers_do_not_notice(self):
        self.reads = 0
        self.boot(self.plain)
        self.assertEqual(0, self.reads)

    def assert_accelerated_ones_are_refused(self):
        self.longest = 0.0
        server = self.boot(self.accelerated, expected_state='ERROR')
        self.assertIn(
            'device profile fpga: the database of accelerators',
            server['fault']['message'],
        )
        self.assertLess(0, self.reads)
        self.assertLess(self.longest, _SOON_S)


class TestFromTheStart(AwayTestCase):
    """nova-scheduler has never had an answer."""

    def assert_works_without(self, server):
        self.start_accelerated_compute('host1')
        self.use(f'mysql+pymysql://nobody@127.0.0.1:{server}/none')
        self.assert_plain_servers_do_not_notice()
        self.assert_accelerated_ones_are_refused()

    def test_it_refuses(self):
        self.assert_works_without(1)

    def test_it_accepts_and_stays_silent(self):
        server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(server.close)
        self.assert_works_without(server.getsockname()[1])


class TestLater(AwayTestCase):
    """nova-scheduler has connections to it."""

    DATABASE = 'mysql'

    def setUp(self):
        super().setUp()
        url = engine.url()
        self.server = self.useFixture(
            relay.Relay(str(url.host), url.port or 3306)
        )
        self.use(
            url.set(host='127.0.0.1', port=self.server.port).render_as_string(
                hide_password=False
            )
        )
        self.start_accelerated_compute('host1')
        self.boot(self.accelerated)
        self.assertLess(0, self.reads)

    def test_it_dies(self):
        self.server.kill()
        self.assert_plain_servers_do_not_notice()
        self.assert_accelerated_ones_are_refused()

    def test_it_stays_silent(self):
        self.server.freeze()
        self.assert_plain_servers_do_not_notice()
        self.assert_accelerated_ones_are_refused()
        self.server.thaw()
        self.boot(self.accelerated)
