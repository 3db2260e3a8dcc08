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

import testtools

from nova_accel.model.devices import subsystem

CARD = subsystem.Subsystem('10de', '157e')


class TestParseId(testtools.TestCase):
    def test_an_id(self):
        self.assertEqual('157e', subsystem.parse_id('0x157e'))

    def test_no_id(self):
        for text in ('', '157e', '0x157', '0x157e0', '0x157e\n', '0xeins'):
            error = self.assertRaises(ValueError, subsystem.parse_id, text)
            self.assertIn('no id', str(error))
        error = self.assertRaises(ValueError, subsystem.parse_id, '7' * 65536)
        self.assertLess(len(str(error)), 100)


class TestOf(testtools.TestCase):
    def test_a_card(self):
        self.assertEqual(CARD, subsystem.of('10de', '157e'))
        self.assertEqual('10de:157e', str(CARD))
        self.assertEqual('8086:0000', str(subsystem.of('8086', '0000')))

    def test_a_card_that_tells_none(self):
        for ids in ((None, '157e'), ('10de', None), ('0000', '0000')):
            self.assertIsNone(subsystem.of(*ids))

    def test_a_virtual_function_has_its_own(self):
        self.assertEqual(
            '8086:1771',
            str(subsystem.of('8086', '1771', CARD)),
        )

    def test_a_virtual_function_without_one_has_its_cards(self):
        for ids in ((None, None), ('10de', '0000'), ('0000', '0000')):
            self.assertEqual(CARD, subsystem.of(*ids, CARD))
