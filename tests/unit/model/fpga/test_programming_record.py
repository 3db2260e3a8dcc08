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
from nova_accel import reason
from nova_accel.model import decoding
from nova_accel.model.fpga import programming_record

RECORD = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d01'
DEVICE = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d02'
BITSTREAM = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d03'
INSTANCE = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d04'

UUIDS = st.uuids().map(str)
NAMES = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    min_size=1,
    max_size=9,
)
TIMES = st.datetimes(
    min_value=datetime.datetime(2026, 1, 1), timezones=st.just(datetime.UTC)
)

RECORDS = st.builds(
    programming_record.Record,
    uuid=UUIDS,
    device_uuid=UUIDS,
    region=NAMES,
    bitstream_id=UUIDS,
    asker=st.builds(
        programming_record.Asker,
        project_id=st.none() | NAMES,
        user_id=st.none() | NAMES,
        instance_uuid=st.none() | UUIDS,
    ),
    started_at=TIMES,
    finished_at=st.none() | TIMES,
    failure=st.none() | st.text(),
)

ENDED = programming_record.Record(
    RECORD,
    DEVICE,
    'region0',
    BITSTREAM,
    programming_record.Asker('project', 'user', INSTANCE),
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
                'uuid': RECORD,
                'device_uuid': DEVICE,
                'region': 'region0',
                'bitstream_id': BITSTREAM,
                'asker': {
                    'project_id': 'project',
                    'user_id': 'user',
                    'instance_uuid': INSTANCE,
                },
                'started_at': '2026-11-21T12:00:00+00:00',
                'finished_at': '2026-11-21T12:01:00+00:00',
                'failure': 'it is hot',
            },
            ENDED.to_dict(),
        )

    def test_what_is_no_record(self):
        for spoilt, fault in (
            ({'started_at': 'today'}, 'started_at is wrong: today'),
            ({'started_at': '2026-11-21T12:00:00'}, 'no time zone'),
            ({'started_at': None}, 'started_at is None'),
            ({'asker': {'name': 'me'}}, 'asker.project_id is missing'),
            ({'uuid': 'record'}, "uuid is 'record'"),
        ):
            error = self.assertRaises(
                decoding.Malformed,
                programming_record.from_dict,
                {**ENDED.to_dict(), **spoilt},
            )
            self.assertIn(fault, str(error))
        self.assertRaises(decoding.Malformed, programming_record.from_dict, {})


class TestReport(testtools.TestCase):
    @given(RECORDS)
    def test_there_and_back(self, record):
        sent = json.loads(json.dumps(record.to_report()))
        told = record.failure and reason.sanitize(record.failure)
        self.assertEqual(
            dataclasses.replace(record, failure=told),
            programming_record.from_report(record.uuid, sent),
        )

    def test_the_form_in_the_body(self):
        self.assertEqual(
            {
                'device_uuid': DEVICE,
                'region': 'region0',
                'bitstream_id': BITSTREAM,
                'project_id': 'project',
                'user_id': 'user',
                'instance_uuid': INSTANCE,
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
            RECORD,
            report,
        )
        self.assertIn('2026-13-01T00:00:00: ', str(fault))
