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

import dataclasses
import datetime
import json

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import programming_record
from nova_accel.model import reason

UUIDS = st.uuids().map(str)
TIMES = st.datetimes(
    min_value=datetime.datetime(2026, 1, 1), timezones=st.just(datetime.UTC)
)

RECORDS = st.builds(
    programming_record.Record,
    uuid=UUIDS,
    device_uuid=UUIDS,
    region=st.text(),
    bitstream_id=UUIDS,
    asker=st.builds(
        programming_record.Asker,
        project_id=st.none() | st.text(),
        user_id=st.none() | st.text(),
        instance_uuid=st.none() | UUIDS,
    ),
    started_at=TIMES,
    finished_at=st.none() | TIMES,
    failure=st.none() | st.text(),
)

ENDED = programming_record.Record(
    'record',
    'device',
    'region0',
    'bitstream',
    programming_record.Asker('project', 'user', 'instance'),
    datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC),
    datetime.datetime(2026, 11, 21, 12, 1, tzinfo=datetime.UTC),
    'it is hot',
)


class TestJournal(testtools.TestCase):
    @given(RECORDS)
    def test_there_and_back(self, record):
        stored = json.loads(json.dumps(record.to_dict()))
        self.assertEqual(record, programming_record.from_dict(stored))

    def test_the_form_in_the_journals_of_earlier_versions(self):
        self.assertEqual(
            {
                'uuid': 'record',
                'device_uuid': 'device',
                'region': 'region0',
                'bitstream_id': 'bitstream',
                'asker': {
                    'project_id': 'project',
                    'user_id': 'user',
                    'instance_uuid': 'instance',
                },
                'started_at': '2026-11-21T12:00:00+00:00',
                'finished_at': '2026-11-21T12:01:00+00:00',
                'failure': 'it is hot',
            },
            ENDED.to_dict(),
        )

    def test_what_is_no_record(self):
        for spoilt, fault in (
            ({'started_at': 'today'}, ValueError),
            ({'started_at': None}, TypeError),
            ({'asker': {'name': 'me'}}, TypeError),
            ({'more': 1}, TypeError),
        ):
            self.assertRaises(
                fault,
                programming_record.from_dict,
                {**ENDED.to_dict(), **spoilt},
            )
        self.assertRaises(KeyError, programming_record.from_dict, {})


class TestReport(testtools.TestCase):
    @given(RECORDS)
    def test_there_and_back(self, record):
        sent = json.loads(json.dumps(record.to_report()))
        told = record.failure and reason.told(record.failure)
        self.assertEqual(
            dataclasses.replace(record, failure=told),
            programming_record.from_report(record.uuid, sent),
        )

    def test_the_form_in_the_body(self):
        self.assertEqual(
            {
                'device_uuid': 'device',
                'region': 'region0',
                'bitstream_id': 'bitstream',
                'project_id': 'project',
                'user_id': 'user',
                'instance_uuid': 'instance',
                'started_at': '2026-11-21T12:00:00+00:00',
                'finished_at': '2026-11-21T12:01:00+00:00',
                'failure': 'it is hot',
            },
            ENDED.to_report(),
        )

    def test_times_are_sent_in_utc(self):
        zone = datetime.timezone(datetime.timedelta(hours=2))
        record = dataclasses.replace(
            ENDED, started_at=ENDED.started_at.astimezone(zone)
        )
        self.assertEqual(ENDED.to_report(), record.to_report())

    def test_a_long_failure_is_cut(self):
        record = dataclasses.replace(ENDED, failure='x' * 9999)
        self.assertEqual(reason.MAX_LENGTH, len(record.to_report()['failure']))

    def test_a_malformed_time_is_named(self):
        report = {**ENDED.to_report(), 'finished_at': '2026-13-01T00:00:00'}
        fault = self.assertRaises(
            exceptions.InvalidRequest,
            programming_record.from_report,
            'record',
            report,
        )
        self.assertIn('2026-13-01T00:00:00: ', str(fault))
