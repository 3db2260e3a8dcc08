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

from nova_accel import exceptions
from nova_accel.model.devices import stated_properties

ONE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
TWO = '9eb88c8c-981c-59f8-9ada-574fd16d4d18'


class TestStated(testtools.TestCase):
    def said(self, value):
        return stated_properties.Stated('image', {'name': value})

    def refusal(self, value, read, *args):
        return str(
            self.assertRaises(
                exceptions.BitstreamRefused,
                getattr(self.said(value), read),
                'name',
                *args,
            )
        )

    def test_a_text(self):
        for value, text in (
            (' zu hei\xdf ', 'zu hei\xdf'),
            ('x' * 255, 'x' * 255),
            (' ', None),
            ('', None),
            (None, None),
            (5, '5'),
        ):
            self.assertEqual(text, self.said(value).text('name'))
        self.assertIsNone(self.said('other').text('another'))
        self.assertEqual('x' * 300, self.said('x' * 300).text('name', 300))

    def test_no_text(self):
        for value, why in (
            ('x' * 256, '256 characters, 255 are allowed'),
            ('a\nb', r'a\nb'),
            ('\ud800', r'\ud800'),
            ('\u202e', r'\u202e'),
            ('\0', r'\x00'),
        ):
            text = self.refusal(value, 'text')
            self.assertIn(why, text)
            self.assertTrue(text.isprintable())
            for part in ('bitstream image', 'property name', 'image set'):
                self.assertIn(part, text)

    def test_a_uuid(self):
        for value in (
            ONE,
            ONE.upper(),
            ONE.replace('-', ''),
            f' {{{ONE}}}',
            f'urn:uuid:{ONE}',
        ):
            self.assertEqual(ONE, self.said(value).uuid('name'))
        self.assertIsNone(self.said('').uuid('name'))

    def test_no_uuid(self):
        for value in ('---', 'a', ONE + '0', f'{ONE},{TWO}', 'x' * 255):
            text = self.refusal(value, 'uuid')
            self.assertIn('has to be a uuid', text)
            self.assertLess(len(text), 300)

    def test_uuids(self):
        for value, found in (
            (None, ()),
            (',, ,', ()),
            (ONE, (ONE,)),
            (f'{TWO.upper()} ,{ONE},{TWO},', (TWO, ONE)),
        ):
            self.assertEqual(found, self.said(value).uuids('name', 2))

    def test_no_uuids(self):
        three = f'{ONE},{TWO},{ONE[::-1].replace("-", "")}'
        self.assertIn(
            'has 3 uuids, 2 are allowed', self.refusal(three, 'uuids', 2)
        )
        self.assertIn(
            'has to be a uuid', self.refusal(f'{ONE},---', 'uuids', 2)
        )
        self.assertIn('characters', self.refusal(',' * 129, 'uuids', 2))
