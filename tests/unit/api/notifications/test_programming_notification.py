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

from unit import notifications
from unit.api import base

_PATH = f'/hosts/{base.HOSTNAME}/programmings/{base.numbered_uuid(512)}'

_PHASES = {
    'start': {'finished_at': None, 'failure': None},
    'end': {'failure': None},
    'error': {},
}


class ProgrammingNotificationTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sent = self.useFixture(notifications.Notifications('test'))
        self.report_host()

    def test_samples(self) -> None:
        for phase, fields in _PHASES.items():
            self.ok(
                'PUT', _PATH, {**base.RECORD, **fields}, roles=base.SERVICE
            )
            [message] = self.sent.pop()
            self.assertEqual(
                f'deployable.program.{phase}', message['event_type']
            )
            self.assertEqual(*notifications.sample_of(message))

    def test_what_is_refused_is_not_told(self) -> None:
        self.ok('PUT', _PATH, base.RECORD, roles=base.SERVICE)
        self.sent.pop()
        answer = self.call(
            'PUT',
            _PATH.replace(base.HOSTNAME, 'other'),
            base.RECORD,
            roles=base.SERVICE,
        )
        self.assertEqual(409, answer.status_int)
        self.assertEqual([], self.sent.pop())
