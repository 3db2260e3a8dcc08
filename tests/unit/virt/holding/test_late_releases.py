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
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt.holding import late_releases

ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD


class TestLateReleases(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.findings = host_findings.Findings()
        self.late = late_releases.LateReleases(self.findings)

    def release(self, instance_uuid, role=ACTIVE, error=None):
        with self.late.tried(instance_uuid, role):
            if error is not None:
                raise error

    @property
    def found(self):
        return {
            (found.kind, found.instance_uuid): found.words
            for found in self.findings.all()
        }

    def test_until_it_succeeds(self):
        self.release('a', error=exceptions.DeviceError('it is stuck'))
        self.release('b', error=KeyError('a bug'))
        self.assertEqual(
            {
                (finding.Kind.NOT_RELEASED, 'a'): (
                    'its accelerators (active) are not released yet: it is '
                    'stuck'
                ),
                (finding.Kind.NOT_RELEASED, 'b'): (
                    'its accelerators (active) are not released yet: '
                    "KeyError('a bug')"
                ),
            },
            self.found,
        )
        self.release('a', OLD)
        self.assertEqual(2, len(self.found))
        self.release('a')
        self.assertEqual([(finding.Kind.NOT_RELEASED, 'b')], list(self.found))
        self.release('b')
        self.assertEqual({}, self.found)

    def test_the_log_has_each_failure(self):
        for _time in range(2):
            self.release('a', error=exceptions.DeviceError('it is stuck'))
        self.assertEqual(2, self.log.output.count('it is stuck'))

    def test_an_api_that_does_not_answer_is_no_finding(self):
        self.release('a', error=exceptions.ServiceUnavailable('away'))
        self.assertIn('away', self.log.output)
        self.assertEqual({}, self.found)

    def test_what_was_released_some_other_way(self):
        for name in 'ab':
            self.release(name, error=exceptions.DeviceError('it is stuck'))
        self.late.keep({('b', ACTIVE), ('a', OLD)})
        self.assertEqual([(finding.Kind.NOT_RELEASED, 'b')], list(self.found))
