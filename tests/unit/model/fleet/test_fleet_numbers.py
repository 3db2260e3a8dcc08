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

import datetime

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model.fleet import fleet_numbers
from nova_accel.model.units import unit_state

_State = unit_state.UnitState

_UNITS = st.dictionaries(
    st.tuples(
        st.sampled_from([f'CUSTOM_{number}' for number in range(9)]),
        st.sampled_from(list(_State)),
    ),
    st.integers(1, 99),
)


class ByClassTest(testtools.TestCase):
    def test_each_state_has_a_number(self) -> None:
        found = fleet_numbers.by_class(
            {('FPGA', _State.FREE): 2, ('FPGA', _State.USED): 3}
        )
        self.assertEqual(
            {
                'FPGA': {
                    **dict.fromkeys(_State, 0),
                    _State.FREE: 2,
                    _State.USED: 3,
                }
            },
            found,
        )

    def test_the_smallest_classes_are_summed(self) -> None:
        found = fleet_numbers.by_class(
            {
                ('A', _State.FREE): 1,
                ('B', _State.FREE): 5,
                ('C', _State.FREE): 2,
                ('C', _State.USED): 2,
            },
            1,
        )
        self.assertEqual(['B', fleet_numbers.OTHERS], list(found))
        self.assertEqual(3, found[fleet_numbers.OTHERS][_State.FREE])
        self.assertEqual(2, found[fleet_numbers.OTHERS][_State.USED])

    @given(_UNITS, st.integers(1, 10))
    def test_nothing_is_lost_and_lines_are_few(self, units, most) -> None:
        found = fleet_numbers.by_class(units, most)
        self.assertLessEqual(len(found), most + 1)
        self.assertEqual(
            sum(units.values()),
            sum(sum(amounts.values()) for amounts in found.values()),
        )

    def test_unusable(self) -> None:
        self.assertEqual(
            set(_State) - {_State.USED, _State.FREE},
            set(fleet_numbers.UNUSABLE),
        )


class PercentilesTest(testtools.TestCase):
    def test_of_a_hundred(self) -> None:
        self.assertEqual(
            {50: 50, 90: 90, 100: 100},
            fleet_numbers.percentiles(range(100, 0, -1)),
        )

    def test_of_one_and_of_none(self) -> None:
        self.assertEqual(
            {50: 7, 90: 7, 100: 7}, fleet_numbers.percentiles([7])
        )
        self.assertEqual({}, fleet_numbers.percentiles([]))

    @given(st.lists(st.floats(0, 1e6), min_size=1))
    def test_so_many_took_no_longer(self, seconds) -> None:
        for percent, most in fleet_numbers.percentiles(seconds).items():
            self.assertIn(most, seconds)
            self.assertGreaterEqual(
                100 * sum(each <= most for each in seconds),
                percent * len(seconds),
            )


class DurationTest(testtools.TestCase):
    def test_a_clock_that_was_set_back(self) -> None:
        now = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
        later = now + datetime.timedelta(seconds=3)
        self.assertEqual(3, fleet_numbers.duration_s(now, later))
        self.assertEqual(0, fleet_numbers.duration_s(now, now))
        self.assertIsNone(fleet_numbers.duration_s(later, now))
