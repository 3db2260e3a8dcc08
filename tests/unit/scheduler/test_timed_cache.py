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

from nova_accel.scheduler import timed_cache


class TestShortMemory(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.useFixture(
            fixtures.MonkeyPatch('time.monotonic', lambda: self.now)
        )
        self.memory = timed_cache.ShortMemory[str]()

    def test_an_answer_lasts_for_a_while(self):
        self.assertIsNone(self.memory.get('a'))
        self.memory.put('a', 'b')
        self.now += timed_cache.KEPT_S - 1
        self.assertEqual('b', self.memory.get('a'))
        self.assertEqual(['b'], self.memory.missing(['a', 'b']))
        self.now += 1
        self.assertIsNone(self.memory.get('a'))
        self.assertEqual(['a', 'b'], self.memory.missing(['a', 'b']))
        self.memory.put('a', 'c')
        self.assertEqual('c', self.memory.get('a'))

    def test_their_number_is_limited(self):
        for number in range(timed_cache.MOST + 1):
            self.memory.put(str(number), 'b')
            self.assertEqual('b', self.memory.get(str(number)))
        self.assertIsNone(self.memory.get('0'))
