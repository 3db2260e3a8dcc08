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

import math

import testtools

from nova_accel.privileged import arguments


class TestArguments(testtools.TestCase):
    def assert_refused(self, method, value, *more):
        error = self.assertRaises(ValueError, method, 'it', value, *more)
        self.assertIs(ValueError, type(error))
        self.assertIn('it is ', str(error))
        self.assertLess(len(str(error)), 300)

    def test_text(self):
        self.assertEqual('a', arguments.text('it', 'a'))
        for value in (None, 1, b'a', ['a'], {'a': 1}, b'a' * 10**6):
            self.assert_refused(arguments.text, value)

    def test_integer(self):
        for value in (1, 3):
            self.assertEqual(value, arguments.integer('it', value, 1, 3))
        for value in (0, 4, -1, 2.0, '2', True, None, [], 10**30, {}):
            self.assert_refused(arguments.integer, value, 1, 3)

    def test_seconds(self):
        self.assertEqual(1, arguments.seconds('it', 0.1, 60))
        self.assertEqual(60, arguments.seconds('it', 60, 60))
        for value in (0, -1, 61, math.nan, math.inf, True, '5', None, []):
            self.assert_refused(arguments.seconds, value, 60)
