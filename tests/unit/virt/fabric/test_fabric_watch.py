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

import threading

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.virt.fabric import fabric_watch


class TestWatch(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_accel'))

    def test_from_time_to_time_until_the_end(self):
        taken = threading.Semaphore(0)
        watched = fabric_watch.FabricWatch(taken.release, 0.01)
        watched.begin()
        for _step in range(3):
            self.assertTrue(taken.acquire(timeout=30))
        watched.end()

    def test_the_end_comes_first(self):
        taken = threading.Event()
        watched = fabric_watch.FabricWatch(taken.set, 0.01)
        watched.end()
        watched.begin()
        self.assertFalse(taken.wait(0.1))

    def test_each_fault_is_told_once(self):
        faults = ['away', 'away', 'busy', None, 'busy']

        def step():
            fault = faults.pop(0)
            if fault:
                raise exceptions.FabricError(fault)

        watched = fabric_watch.FabricWatch(step, 1)
        for _step in range(5):
            watched.step()
        self.assertEqual(1, self.log.output.count(': away'))
        self.assertEqual(2, self.log.output.count(': busy'))

    def test_a_bug_does_not_end_it(self):
        fabric_watch.FabricWatch(lambda: 1 / 0, 1).step()
        self.assertIn('ZeroDivisionError', self.log.output)
