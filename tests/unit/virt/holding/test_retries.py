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
import pathlib
import types

import fixtures
from nova import exception
import oslo_messaging
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal
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


ENTRY = attach_journal.AttachEntry(
    '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
    arq_types.Role.ACTIVE,
    3,
    attach_journal.AttachStep.HELD,
)

ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD


class ReleasesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.findings = host_findings.Findings()
        self.journal = attach_journal.AttachJournal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.journal.write(ENTRY)
        self.asked = []
        self.answers = []
        self.stuck = False
        self.releases = retries.Releases(
            self.journal,
            types.SimpleNamespace(release=self.answer),
            types.SimpleNamespace(unplug_all=self.unplug_all),
            types.SimpleNamespace(released=lambda arqs: None),
            self.findings,
        )

    def answer(self, instance_uuid, role, attempt):
        self.asked.append((role, attempt))
        if self.answers:
            raise self.answers.pop(0)

    def unplug_all(self, arqs):
        if self.stuck:
            raise exceptions.DeviceError('stuck')


class TestReleases(ReleasesTestCase):
    def test_it_is_forgotten(self):
        self.assertFalse(self.releases.is_due(ENTRY))
        self.releases.release(ENTRY)
        self.assertEqual([], self.journal.entries())
        self.assertEqual([(ENTRY.role, 3)], self.asked)

    def test_the_role_before_is_freed_too(self):
        self.releases.release(
            dataclasses.replace(ENTRY, moved_from=arq_types.Role.OLD)
        )
        self.assertEqual(
            [(ENTRY.role, 3), (arq_types.Role.OLD, 3)], self.asked
        )

    def test_a_newer_attempt_has_it(self):
        self.answers = [exceptions.StaleAttempt('old', 7)]
        self.releases.release(ENTRY)
        self.assertEqual([], self.journal.entries())

    def test_the_api_has_forgotten_the_numbers(self):
        self.answers = [exceptions.FarAttempt('far', 0)]
        self.releases.release(ENTRY)
        self.assertEqual([(ENTRY.role, 3), (ENTRY.role, 0)], self.asked)
        self.assertEqual([], self.journal.entries())

    def test_one_that_fails_is_due(self):
        self.stuck = True
        self.assertRaises(exceptions.DeviceError, self.releases.release, ENTRY)
        self.assertEqual([], self.asked)
        # Also if the journal could not be written.
        self.assertTrue(self.releases.is_due(ENTRY))
        (left,) = self.journal.entries()
        self.assertEqual(attach_journal.AttachStep.RELEASING, left.step)
        self.assertTrue(self.releases.is_due(left))
        self.stuck = False
        self.releases.release(left)
        self.assertFalse(self.releases.is_due(ENTRY))


class TestFailedReleases(ReleasesTestCase):
    def release(self, instance_uuid, role=ACTIVE, error=None):
        with self.releases.retry_later(instance_uuid, role):
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
        self.releases.keep_failed({('b', ACTIVE), ('a', OLD)})
        self.assertEqual([(finding.Kind.NOT_RELEASED, 'b')], list(self.found))
