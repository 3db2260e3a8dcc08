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

import fixtures
from oslo_utils import timeutils
import testtools

from nova_accel import exceptions
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.programming import programming_history

NOW = timeutils.utcnow(with_timezone=True)
BEGUN = programming_record.Record(
    'uuid',
    'device',
    'region0',
    'bitstream',
    programming_record.Asker(),
    NOW,
)
ENDED = BEGUN.ended(NOW, 'CRC error')
OTHER = dataclasses.replace(BEGUN, uuid='other')


class TestHistory(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.told = []
        self.fault = None
        self.history = programming_history.History(self)

    def programming(self, record):
        if self.fault is not None:
            raise self.fault
        self.told.append(record)

    def note(self, *records):
        for record in records:
            self.history.note(record)
            self.history._executor.submit(lambda: None).result(30)

    def test_it_is_told_at_once_and_once(self):
        self.note(BEGUN, ENDED)
        self.history.report()
        self.assertEqual([BEGUN, ENDED], self.told)

    def test_what_the_api_has_not_heard_is_told_later(self):
        self.fault = exceptions.ServiceUnavailable('away')
        self.note(BEGUN, OTHER, ENDED)
        self.assertRaises(exceptions.ServiceUnavailable, self.history.report)
        self.assertIn('away', self.log.output)
        self.fault = None
        self.history.report()
        self.assertCountEqual([ENDED, OTHER], self.told)

    def test_what_it_refuses_is_not_told_again(self):
        self.fault = exceptions.Conflict('it has ended')
        self.note(BEGUN)
        self.fault = None
        self.history.report()
        self.assertEqual([], self.told)
        self.assertIn('it has ended', self.log.output)

    def test_it_never_fails_a_programming(self):
        self.fault = ZeroDivisionError()
        self.note(BEGUN)
        self.history._executor.shutdown()
        self.history.note(ENDED)
        self.assertIn('is not reported', self.log.output)
