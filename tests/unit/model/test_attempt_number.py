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

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model import attempt_number

#: The end of a signed 64-bit column.
END = 2**63 - 1


class TestAttempt(testtools.TestCase):
    def assert_reach(self, is_in_reach, number, newest):
        self.assertIs(
            is_in_reach,
            attempt_number.is_in_reach(number, newest),
            (number, newest),
        )

    def test_what_was_counted(self):
        for newest in (0, 7, 2**60):
            self.assert_reach(True, newest + 1, newest)
            self.assert_reach(True, newest + 2**20, newest)
            self.assert_reach(False, newest + 2**20 + 1, newest)

    def test_nobody_comes_near_the_end(self):
        self.assertLess(attempt_number.MAX, END)
        self.assert_reach(False, attempt_number.MAX, 2**60)
        self.assert_reach(False, END, 2**60)

    @hypothesis.given(st.integers(0, attempt_number.MAX))
    def test_the_next_one_is_always_in_reach(self, newest):
        self.assert_reach(True, newest + 1, newest)
