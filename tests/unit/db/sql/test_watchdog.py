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

import socket
import threading
import time

import fixtures
import testtools

from nova_accel.db.sql import watchdog


class TestWatchdog(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())

    def connection(self) -> tuple[socket.socket, socket.socket]:
        here, there = socket.socketpair()
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        here.settimeout(20)
        return here, there

    def watch(self, here: socket.socket, seconds: float) -> int:
        return watchdog.watch(here.fileno(), time.monotonic() + seconds)

    def test_who_waits_is_freed(self) -> None:
        here, there = self.connection()
        self.watch(here, 0.2)
        self.assertEqual(b'', here.recv(1))
        self.assertEqual(b'', there.recv(1))
        self.assertIn('cut', self.log.output)

    def test_what_is_given_back_is_left_alone(self) -> None:
        here, there = self.connection()
        watchdog.release(self.watch(here, 0.2))
        other, _there = self.connection()
        self.watch(other, 0.3)
        self.assertEqual(b'', other.recv(1))
        there.send(b'a')
        self.assertEqual(b'a', here.recv(1))

    def test_the_first_moment_counts(self) -> None:
        late, _there = self.connection()
        number = self.watch(late, 60)
        here, _there = self.connection()
        self.watch(here, 0.2)
        self.assertEqual(b'', here.recv(1))
        watchdog.release(number)

    def test_the_descriptor_may_be_another_s_by_then(self) -> None:
        here, there = socket.socketpair()
        number = self.watch(here, 0.2)
        here.close()
        with there:
            time.sleep(0.5)
        watchdog.release(number)

    def test_one_thread(self) -> None:
        for _again in range(3):
            here, _there = self.connection()
            watchdog.release(self.watch(here, 60))
        self.assertEqual(
            1,
            len(
                [
                    thread
                    for thread in threading.enumerate()
                    if thread.name == 'nova_accel-database'
                ]
            ),
        )
