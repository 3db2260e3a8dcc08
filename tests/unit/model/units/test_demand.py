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

from nova_accel.model.units import demand

WEIGHTS = st.floats(0, 1e9)
AGES = st.floats(0, 1e9)


class TestDecayed(testtools.TestCase):
    def test_half_after_the_half_life(self):
        self.assertEqual(2.0, demand.decayed(4.0, 60, 60))
        self.assertEqual(1.0, demand.decayed(4.0, 120, 60))

    @hypothesis.given(WEIGHTS, AGES, AGES)
    def test_less_with_time(self, weight, first, second):
        older, newer = max(first, second), min(first, second)
        self.assertLessEqual(
            demand.decayed(weight, older, 60),
            demand.decayed(weight, newer, 60),
        )

    @hypothesis.given(WEIGHTS, st.floats(-1e9, 0))
    def test_a_clock_that_was_set_back_adds_nothing(self, weight, age):
        self.assertEqual(weight, demand.decayed(weight, age, 60))
