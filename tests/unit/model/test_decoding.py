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


import enum
import json

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import decoding

UUID = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=9,
)


class Colour(enum.StrEnum):
    RED = 'red'
    GREEN = 'green'


def a_card(value):
    field = decoding.Fields(value)
    return (
        field('uuid', decoding.uuid),
        field(
            'regions',
            decoding.listed(decoding.part('colour', decoding.one_of(Colour))),
        ),
        field('units', decoding.mapped(decoding.name, decoding.integer(0, 9))),
        field('note', decoding.optional(decoding.text), None),
    )


CARD = {
    'uuid': UUID,
    'regions': [{'colour': 'red'}, {'colour': 'green'}],
    'units': {'VGPU': 3},
}


class TestFields(testtools.TestCase):
    def test_what_is_right(self):
        self.assertEqual(
            (UUID, (Colour.RED, Colour.GREEN), {'VGPU': 3}, None),
            a_card(CARD),
        )
        self.assertEqual('x', a_card({**CARD, 'note': 'x', 'more': 1})[3])

    def test_the_path_of_what_is_wrong(self):
        for spoilt, fault in (
            ({'uuid': UUID.upper()}, f'uuid is {UUID.upper()!r}, not a uuid'),
            ({'regions': {}}, 'regions is {}, not a list'),
            (
                {'regions': [{'colour': 'red'}, {'colour': 'blue'}]},
                "regions[1].colour is 'blue', not one of red, green",
            ),
            ({'regions': [{}]}, 'regions[0].colour is missing'),
            ({'units': [1]}, 'units is [1], not an object'),
            (
                {'units': {'VGPU': True}},
                "units['VGPU'] is True, not a number from 0 to 9",
            ),
            ({'units': {'': 1}}, "units[''] is '', not a name"),
            ({'note': 7}, 'note is 7, not a text'),
            ({'note': 'x' * 256}, 'note has 256 characters, not up to 255'),
            ({'note': 'a\0b'}, 'not a text'),
            ({'regions': [{}] * 5000}, 'regions has 5000 parts, not up to'),
        ):
            error = self.assertRaises(
                decoding.Malformed, a_card, {**CARD, **spoilt}
            )
            self.assertIn(fault, str(error))
        for value in (None, [], 'x', 7):
            error = self.assertRaises(decoding.Malformed, a_card, value)
            self.assertIn('not an object', str(error))

    def test_the_fault_of_a_parser_of_ones_own(self):
        def refuse(value):
            raise exceptions.InvalidName(f'no {value}')

        error = self.assertRaises(
            decoding.Malformed, decoding.Fields({'a': [1]}), 'a', refuse
        )
        self.assertEqual('a is wrong: no [1]', str(error))

    def test_what_is_wrong_is_not_quoted_at_length(self):
        deep = json.loads('[' * 900 + ']' * 900)
        for wrong in ('x' * 1_000_000, [7] * 1_000_000, deep, 10**4000):
            error = self.assertRaises(
                decoding.Malformed, a_card, {**CARD, 'uuid': wrong}
            )
            self.assertLess(len(str(error)), 200)

    @given(VALUES, st.sampled_from([*CARD, 'note']))
    def test_anything_is_right_or_malformed(self, value, name):
        for whole in (value, {**CARD, name: value}):
            try:
                uuid, regions, units, note = a_card(whole)
            except decoding.Malformed:
                continue
            self.assertIs(str, type(uuid))
            self.assertEqual(set(), {*regions} - {*Colour})
            self.assertEqual(set(), {*map(type, units.values())} - {int})
            self.assertIn(type(note), (str, type(None)))


class TestScalars(testtools.TestCase):
    def test_numbers(self):
        parse = decoding.integer(1, 3)
        self.assertEqual([1, 2, 3], [parse(number) for number in (1, 2, 3)])
        for wrong in (0, 4, -1, 2**70, 1.0, True, '1', None, float('nan')):
            self.assertRaises(decoding.Malformed, parse, wrong)

    def test_texts(self):
        self.assertEqual('a\nb', decoding.text('a\nb'))
        self.assertEqual('', decoding.text(''))
        self.assertEqual('a\0b' * 99, decoding.words('a\0b' * 99))
        for parse, wrong in (
            (decoding.text, '\ud800'),
            (decoding.words, 'x' * (decoding.MAX_WORDS + 1)),
            (decoding.name, ''),
            (decoding.uuid, f'{UUID}\n'),
            (decoding.boolean, 1),
            (decoding.matching(r'[0-9]\Z', 'a digit'), '1\n'),
        ):
            self.assertRaises(decoding.Malformed, parse, wrong)

    def test_traits(self):
        self.assertEqual(('CUSTOM_A',), decoding.traits(['CUSTOM_A']))
        for wrong in (['custom'], 'CUSTOM_A', [None]):
            self.assertRaises(decoding.Malformed, decoding.traits, wrong)
