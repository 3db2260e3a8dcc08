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
from nova_accel.model.fleet import host_drain

_END = datetime.datetime(2026, 11, 24, 6, tzinfo=datetime.UTC)


class TestWords(testtools.TestCase):
    def test_words(self) -> None:
        for drain, words in (
            (host_drain.HostDrain('fans', None, False), 'drained: fans'),
            (
                host_drain.HostDrain('fans', _END, False),
                'drained until 2026-11-24 06:00 UTC: fans',
            ),
            (
                host_drain.HostDrain('fans', _END, True),
                'drained until 2026-11-24 06:00 UTC, which is over: fans',
            ),
            (host_drain.HostDrain('a\nb', None, False), 'drained: a\\nb'),
        ):
            self.assertEqual(f'its host is {words}', drain.words)


class TestParseTime(testtools.TestCase):
    def test_time_zones(self) -> None:
        for text in (
            '2026-11-24T06:00:00Z',
            '2026-11-24T06:00Z',
            '2026-11-24T07:00:00+01:00',
            '2026-11-24T01:30:00.000-04:30',
        ):
            self.assertIsNotNone(re.search(host_drain.TIME, text))
            self.assertEqual(_END, host_drain.parse_time('until', text))

    def test_refused(self) -> None:
        for text, fault in (
            ('2026-11-24T06:00:00', 'no time zone'),
            ('2026-13-24T06:00:00Z', 'not a time in ISO 8601'),
            ('tomorrow\n', 'tomorrow\\n is not a time'),
            ('1999-11-24T06:00:00Z', 'year 1999'),
            ('9999-11-24T06:00:00Z', 'year 9999'),
        ):
            error = self.assertRaises(
                exceptions.InvalidRequest, host_drain.parse_time, 'until', text
            )
            self.assertIn(fault, str(error))

    @hypothesis.given(st.text() | st.datetimes().map(str))
    def test_any_text(self, text: str) -> None:
        """It is a time in UTC, or refused."""
        try:
            found = host_drain.parse_time('until', text)
        except exceptions.InvalidRequest:
            return
        self.assertEqual(datetime.timedelta(0), found.utcoffset())

    @hypothesis.given(st.from_regex(host_drain.TIME))
    def test_any_text_of_the_form(self, text: str) -> None:
        try:
            found = host_drain.parse_time('until', text)
        except exceptions.InvalidRequest:
            return
        self.assertEqual(
            found, host_drain.parse_time('until', found.isoformat())
        )
