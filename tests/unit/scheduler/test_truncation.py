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
from nova import conf as nova_conf
from nova.scheduler import host_manager
import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import truncation

CONF = nova_conf.CONF

_GROUPS = [device_profile.Group({'FPGA': 1})]


class Known:
    """Says how many hosts could serve a request.

    :ivar asked: how often it was asked
    """

    def __init__(self, hosts):
        self._hosts = hosts
        self.asked = 0

    def count_hosts(self, groups):
        self.asked += 1
        return self._hosts


class TestWatch(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.output = self.useFixture(fixtures.FakeLogger())
        CONF.set_override('max_placement_results', 20, 'scheduler')
        self.addCleanup(
            CONF.clear_override, 'max_placement_results', 'scheduler'
        )
        self.now = 100.0
        self.watch = truncation.TruncationWatch(lambda: self.now)

    def look(self, hosts, candidates, known):
        """Look at an answer with so many candidates of each host."""
        states = []
        for number in range(hosts):
            states.append(host_manager.HostState('host', f'{number}', None))
            states[-1].allocation_candidates = [{}] * candidates
        self.watch.look(states, _GROUPS, known)
        return self.output.output.count('Placement has left out hosts')

    def test_a_full_answer_without_some_hosts(self):
        self.assertEqual(1, self.look(2, 10, Known(3)))
        for words in (
            '3 have the accelerators',
            '20 allocation candidates',
            'are of 2 hosts',
            '[placement] allocation_candidates_generation_strategy',
            'max_allocation_candidates',
            '[scheduler] max_placement_results',
        ):
            self.assertIn(words, self.output.output)

    def test_other_filters_have_dropped_some(self):
        self.assertEqual(1, self.look(18, 1, Known(30)))

    def test_a_full_answer_with_all_hosts(self):
        self.assertEqual(0, self.look(20, 1, Known(20)))

    def test_an_answer_that_is_not_full(self):
        """Hosts are missing in it for another reason."""
        known = Known(30)
        self.assertEqual(0, self.look(17, 1, known))
        self.assertEqual(0, known.asked)

    def test_nothing_is_known(self):
        self.assertEqual(0, self.look(20, 1, None))

    def test_once_an_hour(self):
        known = Known(30)
        for seconds, warnings in ((0, 1), (1, 1), (3598, 1), (1, 2)):
            self.now += seconds
            self.assertEqual(warnings, self.look(20, 1, known))
        self.assertEqual(2, known.asked)

    def test_not_each_request_is_looked_at(self):
        known = Known(20)
        for seconds, asked in ((0, 1), (59, 1), (1, 2)):
            self.now += seconds
            self.look(20, 1, known)
            self.assertEqual(asked, known.asked)
