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

import hypothesis
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite
import testtools

from nova_accel.db.sql import utc_datetime

ZONES = st.integers(-14 * 60, 14 * 60).map(
    lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
)


class TestUtcDateTime(testtools.TestCase):
    @hypothesis.given(
        st.datetimes(
            datetime.datetime(1971, 1, 1),
            datetime.datetime(2100, 1, 1),
            timezones=ZONES,
        )
    )
    def test_same_moment_comes_back(self, moment: datetime.datetime) -> None:
        type_, dialect = utc_datetime.UtcDateTime(), sqlite.dialect()
        stored = type_.process_bind_param(moment, dialect)
        found = type_.process_result_value(stored, dialect)
        assert found is not None
        self.assertEqual(moment.replace(microsecond=0), found)
        self.assertEqual(datetime.UTC, found.tzinfo)
