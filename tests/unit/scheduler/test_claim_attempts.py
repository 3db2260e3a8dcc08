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

from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_units
from nova_accel.scheduler import claim_attempts
from nova_accel.scheduler import our_group
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


class TestClaimed(testtools.TestCase):
    def test_the_share_of_a_card_is_no_unit(self):
        group = our_group.make(
            device_profile.requester_id(0),
            device_profile.Group({'CUSTOM_SHAPE_WHOLE': 1}),
            share=card_slice.WHOLE_CARD,
        )
        group.provider_uuids = ['card']
        known = known_units.KnownUnits()
        claims = []
        known.claim = lambda server, *claim: claims.append(claim[:-1])
        claim_attempts.ScheduledRequest(
            scheduling.request_spec({device_profile.FLAVOR_KEY: 'p'}, [group]),
            known,
        ).claimed('host')
        self.assertEqual([('card', 'CUSTOM_SHAPE_WHOLE', 1)], claims)


class TestCanClaim(testtools.TestCase):
    """What is set aside before Nova claims the first candidate of a host."""

    def request(self, resource_class, known):
        return claim_attempts.ScheduledRequest(
            scheduling.request_spec(
                {device_profile.FLAVOR_KEY: 'p'},
                [
                    our_group.make(
                        'device_profile_0',
                        device_profile.Group({resource_class: 1}),
                        share=9,
                    )
                ],
            ),
            known,
        )

    def reserving(self, answers, is_room=True):
        """Known units that answer so; what they are asked goes to a list."""
        known, asked = known_units.KnownUnits(), []
        known.serves = lambda _groups: is_room

        def reserve(server, wanted, instead, now):
            asked.append((wanted, instead))
            return answers.pop(0)

        known.reserve = reserve
        return known, asked

    def attempt(self, request, rp_uuid):
        return claim_attempts.Attempt(
            host_manager.HostState(rp_uuid, rp_uuid, None),
            request,
            [{'mappings': {'device_profile_0': [rp_uuid]}}],
        )

    def test_one_host_after_the_other(self):
        known, asked = self.reserving([False, True])
        request = self.request('CUSTOM_SHAPE_WHOLE', known)
        found = [
            len(self.attempt(request, rp_uuid).allocation_candidates)
            for rp_uuid in ('a', 'b')
        ]
        self.assertEqual([0, 1], found)
        one, other = ({(name, 'CUSTOM_SHAPE_WHOLE'): 1} for name in 'ab')
        self.assertEqual([(one, {}), (other, one)], asked)

    def test_units_that_exclude_none(self):
        known, asked = self.reserving([])
        for resource_class, each in (
            ('FPGA', known),
            ('CUSTOM_SHAPE_WHOLE', None),
        ):
            request = self.request(resource_class, each)
            self.assertEqual(
                1, len(self.attempt(request, 'a').allocation_candidates)
            )
        self.assertEqual([], asked)

    def test_claims_that_may_be_void(self):
        """No card has room by what is known: the hosts decide."""
        known, asked = self.reserving([], is_room=False)
        request = self.request('CUSTOM_SHAPE_WHOLE', known)
        self.assertEqual(
            1, len(self.attempt(request, 'a').allocation_candidates)
        )
        self.assertEqual([], asked)

    def test_another_candidate_of_the_host(self):
        """The first one may be one that two groups cannot share."""
        known, _asked = self.reserving([False, False, True])
        request = self.request('CUSTOM_SHAPE_WHOLE', known)
        first = self.attempt(request, 'a')
        first._candidates *= 2
        self.assertEqual([], first.allocation_candidates)
        [second] = claim_attempts.further([first])
        self.assertEqual([], first.allocation_candidates)
        self.assertEqual(2, len(second.allocation_candidates))
