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

from nova_accel import reason


class TestTold(testtools.TestCase):
    @hypothesis.given(st.text(st.characters()), st.integers(0, 99))
    def test_can_be_stored(self, text, max_length):
        told = reason.sanitize(text, max_length)
        self.assertEqual(len(text[:max_length]), len(told))
        self.assertNotIn('\0', told)
        told.encode()

    def test_good_text_stays(self):
        self.assertEqual('zu heiß: 105 °C', reason.sanitize('zu heiß: 105 °C'))

    def test_what_is_replaced(self):
        self.assertEqual('a?b?', reason.sanitize('a\0b\udcff'))
        self.assertEqual(reason.MAX_LENGTH, len(reason.sanitize('x' * 9999)))


class TestPrintable(testtools.TestCase):
    @hypothesis.given(st.text(st.characters()))
    def test_is_one_line(self, text):
        told = reason.printable(text)
        self.assertTrue(told.isprintable())
        self.assertLessEqual(len(told.splitlines()), 1)
        told.encode()

    def test_good_text_stays(self):
        self.assertEqual(
            'zu heiß: 105 °C', reason.printable('zu heiß: 105 °C')
        )

    def test_what_is_replaced(self):
        self.assertEqual(
            r'a\nb\x1b[2J\u2028', reason.printable('a\nb\x1b[2J\u2028')
        )


class TestSome(testtools.TestCase):
    def test_all_of_them(self):
        self.assertEqual('', reason.some([], 2))
        self.assertEqual('a, b', reason.some(['a', 'b'], 2))

    def test_more_than_are_told(self):
        self.assertEqual('a, b and 2 more', reason.some('abcd', 2))
