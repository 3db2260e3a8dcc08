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

import argparse
import datetime

import testtools

from nova_accel.osc import arguments


class TestNumber(testtools.TestCase):
    def test_limits(self) -> None:
        for number, text in (
            (arguments.number(9), '1'),
            (arguments.number(9), '9'),
            (arguments.number(9, least=0), '0'),
        ):
            self.assertEqual(int(text), number(text))
        for text in ('0', '10', '-1'):
            error = self.assertRaises(
                argparse.ArgumentTypeError, arguments.number(9), text
            )
            self.assertEqual(f'{text} is not from 1 to 9', str(error))


class TestTime(testtools.TestCase):
    def test_in_utc(self) -> None:
        self.assertEqual(
            '2026-11-24T06:00:00+00:00',
            arguments.time('end')('2026-11-24T07:00+01:00'),
        )
        self.assertEqual(
            '2026-11-24T00:00:00+00:00',
            arguments.time('end', datetime.UTC)('2026-11-24'),
        )

    def test_refused(self) -> None:
        for text, fault in (
            ('tomorrow', 'end: tomorrow is not a time in ISO 8601'),
            ('2026-11-24', 'end: the time has no time zone'),
        ):
            error = self.assertRaises(
                argparse.ArgumentTypeError, arguments.time('end'), text
            )
            self.assertIn(fault, str(error))
