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

from nova.scheduler import host_manager
import testtools

from nova_accel.scheduler import claim_attempts
from nova_accel.testing import scheduling


class TestFurther(testtools.TestCase):
    """What Nova makes of attempts is in test_candidate_filter."""

    def setUp(self):
        super().setUp()
        self.request = claim_attempts.ScheduledRequest(
            scheduling.request_spec(), None
        )

    def firsts(self, *candidates):
        """A host for each text, with the letters as its candidates."""
        return [
            claim_attempts.Attempt(
                host_manager.HostState(letters, letters, None),
                self.request,
                list(letters),
            )
            for letters in candidates
        ]

    def further(self, *candidates):
        return [
            ''.join(attempt.allocation_candidates)
            for attempt in claim_attempts.further(self.firsts(*candidates))
        ]

    def test_each_candidate_is_first_once(self):
        self.assertEqual(['bac', 'yx', 'cab'], self.further('abc', 'xy', 's'))

    def test_no_candidate_no_attempt(self):
        self.assertEqual([], self.further('', 'a'))

    def test_there_are_so_many_in_all(self):
        for hosts in (1, 10, 63, 64, 65, 1000):
            self.assertEqual(
                max(0, min(claim_attempts.MAX_ATTEMPTS - hosts, 99 * hosts)),
                len(self.further(*['a' * 100] * hosts)),
            )

    def test_a_host_is_told_from_others(self):
        one, other = self.firsts('abc', 'abc')
        again = one.again(1)
        self.assertEqual(
            2, len(claim_attempts.distinct([one, other, again, one.again(2)]))
        )
        self.assertIs(self.request, claim_attempts.request_of([again]))
        self.assertIsNone(
            claim_attempts.request_of([host_manager.HostState('a', 'a', None)])
        )
