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

import fixtures
from nova import exception
import oslo_messaging
import testtools

from nova_accel import exceptions
from nova_accel.model import finding
from nova_accel.virt.holding import retries

KIND = finding.Kind.MDEV


class TestRetryLater(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())

    def tried(self, error=None):
        with retries.retry_later('It is not destroyed') as tried:
            if error is not None:
                raise error
        return tried

    def test_what_is_done(self):
        tried = self.tried()
        self.assertEqual(
            [finding.Finding(KIND, 'destroyed', True, 'server', 'mdev')],
            tried.outcome(KIND, 'destroyed', 'server', 'mdev'),
        )
        self.assertEqual([], tried.failure('It is not destroyed'))
        self.assertEqual('', self.log.output)

    def test_what_fails(self):
        for error, words in (
            (exceptions.DeviceError('it is stuck'), 'it is stuck'),
            (exception.NovaException('no way'), 'no way'),
            (KeyError('a bug'), "KeyError('a bug')"),
        ):
            tried = self.tried(error)
            self.assertEqual(
                [
                    finding.Finding(
                        KIND, f'destroyed; that has failed: {words}'
                    )
                ],
                tried.outcome(KIND, 'destroyed'),
            )
            self.assertEqual(
                [
                    finding.Finding(
                        finding.Kind.NOT_DONE, f'It is not destroyed: {words}'
                    )
                ],
                tried.failure('It is not destroyed'),
            )
            self.assertIn('It is not destroyed, trying', self.log.output)

    def test_a_service_that_does_not_answer_is_not_the_hosts_fault(self):
        for error in (
            exceptions.ServiceUnavailable('away'),
            oslo_messaging.MessagingTimeout('away'),
        ):
            tried = self.tried(error)
            self.assertEqual([], tried.outcome(KIND, 'destroyed'))
            self.assertEqual([], tried.failure('It is not destroyed'))
        self.assertEqual(2, self.log.output.count('away'))
