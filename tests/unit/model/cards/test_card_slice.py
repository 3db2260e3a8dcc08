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

import json

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import decoding
from nova_accel.model.cards import card_slice

WHOLE_CARD = card_slice.WHOLE_CARD

NAMES = st.sampled_from(['whole', 'mig:3g.40gb', 'vgpu:NVIDIA A40-12Q'])


@st.composite
def slices(draw):
    start = draw(st.integers(0, WHOLE_CARD - 1))
    return card_slice.CardSlice(
        draw(NAMES),
        draw(NAMES),
        start,
        draw(st.integers(1, WHOLE_CARD - start)),
    )


def a_slice(start, size, mode=card_slice.MIG):
    return card_slice.CardSlice(f'{mode}:{size}', mode, start, size)


class TestCardSlice(testtools.TestCase):
    def test_slices_of_one_mode_exclude_each_other_where_they_overlap(self):
        for start, size, is_excluded in (
            (0, 4, False),
            (0, 5, True),
            (4, 4, True),
            (5, 1, True),
            (7, 9, True),
            (8, 1, False),
        ):
            one, other = a_slice(4, 4), a_slice(start, size)
            self.assertEqual(is_excluded, one.excludes(other), other)
            self.assertEqual(is_excluded, other.excludes(one), other)

    def test_slices_of_two_modes_exclude_each_other_anywhere(self):
        self.assertTrue(a_slice(0, 1).excludes(a_slice(1, 1, card_slice.VGPU)))

    def test_a_card_divides_into_as_many_units_as_cards_make(self):
        for units in (*range(1, 17), 20, 24, 28, 32, 48, 64):
            self.assertEqual(0, WHOLE_CARD % units, units)

    @given(slices())
    def test_round_trip_through_json(self, each):
        text = json.dumps(each.to_dict())
        self.assertEqual(each, card_slice.from_dict(json.loads(text)))

    def test_what_is_no_slice(self):
        good = a_slice(0, WHOLE_CARD).to_dict()
        self.assertEqual(a_slice(0, WHOLE_CARD), card_slice.from_dict(good))
        for spoilt, fault in (
            ({'shape': ''}, "shape is '', not a name"),
            ({'shape': 'x' * 256}, 'shape has 256 characters'),
            ({'mode': None}, 'mode is None'),
            ({'mode': ''}, 'mode is'),
            ({'start': -1}, 'start is -1'),
            ({'start': WHOLE_CARD, 'size': 1}, 'start is'),
            ({'start': True}, 'start is True'),
            ({'size': 0}, 'size is 0'),
            ({'start': 1}, f'size is {WHOLE_CARD}, not a number from 1 to'),
            ({'size': 0.5}, 'size is 0.5'),
        ):
            error = self.assertRaises(
                decoding.Malformed, card_slice.from_dict, {**good, **spoilt}
            )
            self.assertIn(fault, str(error))
        for name in good:
            error = self.assertRaises(
                decoding.Malformed,
                card_slice.from_dict,
                {key: good[key] for key in good if key != name},
            )
            self.assertIn(f'{name} is missing', str(error))
