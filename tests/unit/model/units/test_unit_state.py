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

import itertools

import testtools

from nova_accel.model.devices import hardware
from nova_accel.model.units import unit_state

State = unit_state.UnitState

MAINTAINING = hardware.Status.MAINTAINING


class TestState(testtools.TestCase):
    def test_the_first_one_counts(self) -> None:
        """A unit in all states is in each in turn as they are mended."""
        bad = {
            'is_held': True,
            'status': MAINTAINING,
            'is_silent': True,
            'fault': 'hot',
            'unclean_reason': 'stuck',
            'is_clean': False,
            'is_present': False,
            'has_room': False,
        }
        found = []
        for field in tuple(bad):
            found.append(unit_state.Condition(**bad).state())
            del bad[field]
        found.append(unit_state.Condition(**bad).state())
        self.assertEqual(list(State), found)

    def test_among_some(self) -> None:
        condition = unit_state.Condition(
            status=MAINTAINING, fault='hot', is_clean=False
        )
        self.assertIs(
            State.FAULTY, condition.state([State.FAULTY, State.DISABLED])
        )
        self.assertIs(State.BEING_CLEANED, condition.state(unit_state.UNCLEAN))
        self.assertIs(State.FREE, condition.state([State.GONE]))

    def test_the_reason_of_a_failure_alone_makes_nothing_unclean(self) -> None:
        condition = unit_state.Condition(unclean_reason='stuck')
        self.assertIs(State.FREE, condition.state())

    def test_each_has_a_meaning(self) -> None:
        self.assertEqual(list(State), list(unit_state.MEANINGS))
        for state, means in unit_state.MEANINGS.items():
            self.assertEqual(state is State.FREE, not means.text)
            self.assertTrue(means.shown)


class TestReason(testtools.TestCase):
    def test_each(self) -> None:
        for reason, bad in (
            (None, {}),
            ('in use', {'is_held': True}),
            ('disabled by an administrator', {'status': MAINTAINING}),
            ('its host is silent', {'is_silent': True}),
            ('faulty: on {0.fire}', {'fault': 'on {0.fire}'}),
            ('gone from its host', {'is_present': False}),
            (
                'other units of its card leave no room for it',
                {'has_room': False},
            ),
            ('being cleaned', {'is_clean': False}),
            (
                'not cleaned: sanitize: I/O error',
                {'is_clean': False, 'unclean_reason': 'sanitize: I/O error'},
            ),
            (
                'gone from its host before it was cleaned',
                {'is_clean': False, 'is_present': False},
            ),
        ):
            self.assertEqual(reason, unit_state.Condition(**bad).reason())

    def test_tenants_read_nothing_that_a_host_says(self) -> None:
        for means in unit_state.MEANINGS.values():
            self.assertNotIn('{', means.public)

    def test_why_a_unit_of_a_disabled_device_is_unclean(self) -> None:
        for status, fault in itertools.product(
            hardware.Status, (None, 'on fire')
        ):
            condition = unit_state.Condition(
                status=status, fault=fault, is_clean=False
            )
            self.assertEqual(
                'being cleaned', condition.reason(unit_state.UNCLEAN)
            )
        self.assertIsNone(unit_state.GOOD.reason(unit_state.UNCLEAN))
