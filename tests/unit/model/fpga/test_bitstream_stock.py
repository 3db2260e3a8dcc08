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

import itertools

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model.fpga import bitstream_stock

NAMES = st.sampled_from('abcde')
DEMANDS = st.dictionaries(NAMES, st.floats(0, 100))
IDLE = st.dictionaries(NAMES, st.integers(0, 8))


def applied(idle, replacements):
    result = dict(idle)
    for old, new in replacements:
        if old is not None:
            result[old] -= 1
        result[new] = result.get(new, 0) + 1
    return result


class TestShort(testtools.TestCase):
    @hypothesis.given(DEMANDS, IDLE, st.integers(0, 5))
    def test_ends_and_keeps_the_number_of_regions(self, demand, idle, empty):
        total = sum(idle.values()) + empty
        found = list(bitstream_stock.short(demand, idle, total))
        self.assertLessEqual(len(found), total)
        after = applied(idle, found)
        self.assertGreaterEqual(min(after.values(), default=0), 0)
        self.assertLessEqual(sum(after.values()), total)
        if any(demand.values()):
            self.assertEqual(total, sum(after.values()))
        for old, new in found:
            self.assertNotEqual(old, new)
            self.assertGreater(demand[new], 0)
        self.assertEqual([], list(bitstream_stock.short(demand, after, total)))

    @hypothesis.given(DEMANDS, IDLE)
    def test_each_replacement_is_worth_it(self, demand, idle):
        held = dict(idle)
        for old, new in bitstream_stock.short(
            demand, idle, sum(idle.values())
        ):
            self.assertGreater(
                demand[new] / (held.get(new, 0) + 1),
                bitstream_stock.MARGIN * demand.get(old, 0) / held[old],
            )
            held = applied(held, [(old, new)])

    def test_in_proportion(self):
        demand = {'a': 60.0, 'b': 30.0, 'c': 10.0}
        self.assertEqual(
            {'a': 6, 'b': 3, 'c': 1},
            applied({}, bitstream_stock.short(demand, {}, 10)),
        )

    def test_the_most_urgent_first(self):
        self.assertEqual(
            [('c', 'a'), (None, 'b')][::-1],
            list(
                itertools.islice(
                    bitstream_stock.short({'a': 4.0, 'b': 5.0}, {'c': 1}, 2),
                    2,
                )
            ),
        )

    def test_small_differences_change_nothing(self):
        self.assertEqual(
            [],
            list(
                bitstream_stock.short(
                    {'a': 1.1, 'b': 1.0}, {'a': 3, 'b': 5}, 8
                )
            ),
        )

    def test_nothing_is_wanted(self):
        self.assertEqual([], list(bitstream_stock.short({}, {'a': 1}, 3)))


class TestMissed(testtools.TestCase):
    def test_for_each_region(self):
        self.assertEqual(
            {'a': 2.0, 'b': 0.0},
            bitstream_stock.missed({'a': 6.0, 'c': 1.0}, {'a': 3, 'b': 2}),
        )
