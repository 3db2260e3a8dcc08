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
import re

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import iso_time

_END = datetime.datetime(2026, 11, 24, 6, tzinfo=datetime.UTC)


class TestParse(testtools.TestCase):
    def test_time_zones(self) -> None:
        for text in (
            '2026-11-24T06:00:00Z',
            '2026-11-24T06:00Z',
            '2026-11-24T07:00:00+01:00',
            '2026-11-24T01:30:00.000-04:30',
        ):
            self.assertIsNotNone(re.search(iso_time.TIME, text))
            self.assertEqual(_END, iso_time.parse('until', text))

    def test_refused(self) -> None:
        for text, fault in (
            ('2026-11-24T06:00:00', 'no time zone'),
            ('2026-13-24T06:00:00Z', 'not a time in ISO 8601'),
            ('tomorrow\n', 'tomorrow\\n is not a time'),
            ('1999-11-24T06:00:00Z', 'year 1999'),
            ('9999-11-24T06:00:00Z', 'year 9999'),
        ):
            error = self.assertRaises(
                exceptions.InvalidRequest, iso_time.parse, 'until', text
            )
            self.assertIn(fault, str(error))

    @hypothesis.given(st.text() | st.datetimes().map(str))
    def test_any_text(self, text: str) -> None:
        """It is a time in UTC, or refused."""
        try:
            found = iso_time.parse('until', text)
        except exceptions.InvalidRequest:
            return
        self.assertEqual(datetime.timedelta(0), found.utcoffset())

    @hypothesis.given(st.from_regex(iso_time.TIME))
    def test_any_text_of_the_form(self, text: str) -> None:
        try:
            found = iso_time.parse('until', text)
        except exceptions.InvalidRequest:
            return
        self.assertEqual(found, iso_time.parse('until', found.isoformat()))

    def test_a_zone_for_a_time_that_does_not_say(self) -> None:
        for text in ('2026-11-24T06:00', '2026-11-24T07:00+01:00'):
            self.assertEqual(_END, iso_time.parse('end', text, datetime.UTC))
        self.assertEqual(
            _END.replace(hour=0),
            iso_time.parse('end', '2026-11-24', datetime.UTC),
        )
