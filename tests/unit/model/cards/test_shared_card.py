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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model.cards import shared_card
from unit.model.cards import slices

#: Class -> the slices of its units.
OFFERED = {
    'whole': [slices.WHOLE],
    'half': [slices.eighths('mig:3g.40gb', start, 4) for start in (0, 4)],
    'eighth': [slices.eighths('mig:1g.10gb', start, 1) for start in range(7)],
}
[WHOLE], HALVES, EIGHTHS = OFFERED.values()

CLASSES = st.sampled_from(list(OFFERED))


def a_card(*taken):
    return shared_card.SharedCard(OFFERED, taken)


class TestTake(testtools.TestCase):
    def test_units_that_are_set_aside_leave_room_for_fewer(self):
        card = a_card()
        self.assertIn(card.take('half'), HALVES)
        self.assertIsNone(card.take('whole'))
        self.assertIn(card.take('half'), HALVES)
        for resource_class in OFFERED:
            self.assertIsNone(card.take(resource_class))

    def test_beside_what_servers_have(self):
        self.assertEqual(HALVES[1], a_card(EIGHTHS[2]).take('half'))
        self.assertIsNone(a_card(EIGHTHS[2], HALVES[1]).take('half'))
        self.assertIsNone(a_card(WHOLE).take('eighth'))

    def test_what_no_one_may_have_is_never_chosen(self):
        card = shared_card.SharedCard(
            {**OFFERED, 'eighth': [EIGHTHS[4]], 'half': []}, ()
        )
        self.assertIsNone(card.take('half'))
        self.assertEqual(EIGHTHS[4], card.take('eighth'))
        self.assertIsNone(card.take('eighth'))

    @given(st.lists(CLASSES, max_size=9))
    def test_what_is_taken_fits_together(self, classes):
        """And none is refused while a unit of its shape has room."""
        card, taken = a_card(), []
        for resource_class in classes:
            found = card.take(resource_class)
            if found is None:
                for each in OFFERED[resource_class]:
                    self.assertTrue(any(map(each.excludes, taken)))
                continue
            self.assertIn(found, OFFERED[resource_class])
            self.assertFalse(any(map(found.excludes, taken)))
            taken.append(found)


class TestFree(testtools.TestCase):
    def test_each_by_itself(self):
        for taken, expected in (
            ([], [1, 2, 7]),
            ([WHOLE], [0, 0, 0]),
            ([EIGHTHS[0]], [0, 1, 6]),
            ([HALVES[1]], [0, 1, 4]),
        ):
            card = a_card(*taken)
            self.assertEqual(expected, [card.free(name) for name in OFFERED])

    def test_what_is_set_aside(self):
        card = a_card()
        card.take('whole')
        self.assertEqual([0, 0, 0], [card.free(name) for name in OFFERED])


class TestHarm(testtools.TestCase):
    def test_nothing_is_set_aside(self):
        card = a_card()
        for amounts in ({'half': 2}, {'half': 1, 'eighth': 2}, {'whole': 2}):
            card.harm(amounts, True)
            self.assertEqual([1, 2, 7], [card.free(name) for name in OFFERED])

    def test_no_room(self):
        for amounts in ({'whole': 2}, {'half': 3}, {'half': 1, 'whole': 1}):
            self.assertIsNone(a_card().harm(amounts, True))
        self.assertIsNone(a_card(WHOLE).harm({'eighth': 1}, True))

    def test_the_fullest_card_first_and_an_empty_one_last(self):
        for resource_class, taken in (
            ('eighth', ([*EIGHTHS[:3]], [EIGHTHS[0]], [])),
            # Each has room for one half.
            ('half', ([HALVES[0]], [EIGHTHS[0]], [])),
        ):
            costs = [
                a_card(*each).harm({resource_class: 1}, True) for each in taken
            ]
            self.assertEqual(sorted(set(costs)), costs)

    def test_spread(self):
        costs = [
            a_card(*taken).harm({'eighth': 1}, False)
            for taken in ([], [EIGHTHS[0]], EIGHTHS[:3])
        ]
        self.assertEqual(sorted(set(costs)), costs)
