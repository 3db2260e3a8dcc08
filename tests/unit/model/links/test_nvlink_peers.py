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

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel.model.links import nvlink_peers

Peers = nvlink_peers.Peers

SOME = strategies.frozensets(strategies.sampled_from('abcde'))


def peers(up='', lost=''):
    return Peers(frozenset(up), frozenset(lost))


class TestNow(testtools.TestCase):
    def now(self, up, told, *before):
        return nvlink_peers.now(set(up), set(told), peers(*before))

    def test_the_first_look(self):
        self.assertEqual(peers('bc'), self.now('bc', 'abcd'))

    def test_a_link_fails_and_works_again(self):
        self.assertEqual(peers('b', 'c'), self.now('b', 'abc', 'bc'))
        self.assertEqual(peers('b', 'c'), self.now('b', 'abc', 'b', 'c'))
        self.assertEqual(peers('bc'), self.now('bc', 'abc', 'b', 'c'))

    def test_a_peer_that_a_guest_has(self):
        """Its end of the link may be down for that reason alone."""
        self.assertEqual(peers('bc'), self.now('b', 'ab', 'bc'))
        self.assertEqual(peers('b', 'c'), self.now('b', 'ab', 'b', 'c'))

    def test_a_bridge_that_was_moved(self):
        self.assertEqual(peers('c'), self.now('c', 'abc', '', 'b'))
        self.assertEqual(peers('c'), self.now('c', 'abc', 'b'))

    @hypothesis.given(SOME, SOME, SOME, SOME)
    def test_what_is_up_is_not_lost(self, up, told, before, lost):
        found = nvlink_peers.now(up, told, Peers(before, lost))
        self.assertEqual(up, found.up & (told | up) - (before - told - up))
        self.assertTrue(found.up.isdisjoint(found.lost))
        self.assertLessEqual(found.lost, before | lost)

    @hypothesis.given(SOME, SOME)
    def test_the_same_answer_changes_nothing(self, up, told):
        once = nvlink_peers.now(up, told, Peers())
        self.assertEqual(once, nvlink_peers.now(up, told, once))


class TestPairs(testtools.TestCase):
    def test_both_ends_say_so(self):
        found = nvlink_peers.pairs(
            {'a': peers('bc'), 'b': peers('a'), 'c': peers('d')}
        )
        self.assertEqual(({frozenset('ab')}, frozenset()), found)

    def test_either_end_lost_it(self):
        found = nvlink_peers.pairs(
            {'a': peers('c', 'b'), 'b': peers('a'), 'c': peers('a')}
        )
        self.assertEqual(
            ({frozenset('ab'), frozenset('ac')}, {frozenset('ab')}), found
        )
