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

import json

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address

UUID = '9b3b8cd3-949a-48a4-9524-54a7d808ca85'
STATES = st.sampled_from(list(arq_types.State))
STORED = [
    state for state in arq_types.State if state is not arq_types.State.UNKNOWN
]

NAMES = st.text(
    st.characters(exclude_characters='\0', exclude_categories=['Cs']),
    max_size=9,
)

ARQS = st.builds(
    arq_types.Arq,
    uuid=st.uuids().map(str),
    state=STATES,
    device_profile_name=NAMES,
    device_profile_group_id=st.integers(0, 9),
    group=st.dictionaries(NAMES, NAMES),
    device_rp_uuid=st.uuids().map(str),
    handle=st.builds(
        attach_handle.AttachHandle,
        uuid=st.uuids().map(str),
        address=st.builds(
            pci_address.PciAddress,
            domain=st.just(0),
            bus=st.integers(0, 0xFF),
            slot=st.integers(0, 0x1F),
            function=st.integers(0, 7),
        ),
        mdev_type=st.none() | st.just('nvidia-11'),
    ),
)


class TestTransitions(testtools.TestCase):
    def test_every_state_has_its_row(self):
        self.assertEqual(set(arq_types.State), set(arq_types.TRANSITIONS))

    def test_every_stored_state_can_be_deleted(self):
        """In one step: a delete is one UPDATE, whatever state it meets."""
        self.assertEqual(
            set(STORED) - {arq_types.State.DELETING},
            arq_types.sources(arq_types.State.DELETING),
        )

    def test_every_stored_state_is_reached_from_the_first(self):
        reached = {arq_types.State.INITIAL}
        for _step in arq_types.State:
            reached |= set().union(
                *(arq_types.TRANSITIONS[each] for each in reached)
            )
        self.assertEqual(set(STORED), reached)

    def test_the_derived_state_is_never_stored(self):
        self.assertEqual(
            frozenset(), arq_types.sources(arq_types.State.UNKNOWN)
        )
        self.assertEqual(
            frozenset(), arq_types.TRANSITIONS[arq_types.State.UNKNOWN]
        )

    def test_nothing_begins_again(self):
        self.assertEqual(
            frozenset(), arq_types.sources(arq_types.State.INITIAL)
        )
        self.assertEqual(
            frozenset(), arq_types.TRANSITIONS[arq_types.State.DELETING]
        )

    def test_no_state_follows_itself(self):
        for state, following in arq_types.TRANSITIONS.items():
            self.assertNotIn(state, following)

    def test_what_is_bound_or_failed_is_not_bound_afresh(self):
        for state in (
            arq_types.State.BOUND,
            arq_types.State.BIND_FAILED,
            arq_types.State.UNBIND_FAILED,
            arq_types.State.DELETING,
        ):
            self.assertNotIn(
                arq_types.State.BIND_STARTED, arq_types.TRANSITIONS[state]
            )
        self.assertEqual(
            {
                arq_types.State.INITIAL,
                arq_types.State.BIND_STARTED,
                arq_types.State.UNBOUND,
                arq_types.State.PROVISIONING,
            },
            arq_types.sources(arq_types.State.BOUND),
        )

    def test_a_failed_unbind_can_be_tried_again(self):
        self.assertIn(
            arq_types.State.UNBOUND,
            arq_types.TRANSITIONS[arq_types.State.UNBIND_FAILED],
        )

    @given(STATES, STATES)
    def test_sources_is_the_inverse_of_the_table(self, present, wanted):
        self.assertEqual(
            wanted in arq_types.TRANSITIONS[present],
            present in arq_types.sources(wanted),
        )

    @given(STATES, STATES)
    def test_check_agrees_with_the_table(self, present, wanted):
        if wanted in arq_types.TRANSITIONS[present]:
            self.assertIsNone(
                arq_types.check_transition(UUID, present, wanted)
            )
            return
        error = self.assertRaises(
            exceptions.InvalidTransition,
            arq_types.check_transition,
            UUID,
            present,
            wanted,
        )
        for part in (UUID, str(present), str(wanted)):
            self.assertIn(part, str(error))


class TestWire(testtools.TestCase):
    def test_the_states_of_cyborg(self):
        self.assertLessEqual(
            {
                'Initial',
                'BindStarted',
                'Bound',
                'BindFailed',
                'Unbound',
                'UnbindFailed',
                'Deleting',
            },
            {str(state) for state in arq_types.State},
        )

    def test_resolved_as_nova_has_it(self):
        self.assertEqual(
            {'Bound', 'BindFailed', 'Deleting'}, arq_types.RESOLVED
        )

    def test_roles(self):
        self.assertEqual(
            ['active', 'old', 'incoming', 'port'], list(arq_types.Role)
        )


class TestArq(testtools.TestCase):
    @given(ARQS)
    def test_round_trip_through_json(self, value):
        text = json.dumps(value.to_dict())
        self.assertEqual(value, arq_types.Arq.from_dict(json.loads(text)))

    def test_to_dict(self):
        value = arq_types.Arq(
            uuid=UUID,
            state=arq_types.State.BOUND,
            device_profile_name='gzip',
            device_profile_group_id=1,
            group={'resources:FPGA': '1'},
            device_rp_uuid='b59d4756-19a0-36bb-bfe9-e64e522f47ce',
            handle=attach_handle.AttachHandle(
                'c6a1b2cf-0d3b-4bd6-a7d5-0c1f6b3b6a01',
                pci_address.PciAddress(0, 0x81, 0, 1),
            ),
        )
        self.assertEqual(
            {
                'uuid': UUID,
                'state': 'Bound',
                'device_profile_name': 'gzip',
                'device_profile_group_id': 1,
                'group': {'resources:FPGA': '1'},
                'device_rp_uuid': 'b59d4756-19a0-36bb-bfe9-e64e522f47ce',
                'attach_handle': value.handle.to_dict(),
            },
            value.to_dict(),
        )
        self.assertIs(str, type(value.to_dict()['state']))

    def test_resource_class(self):
        for name in ('FPGA', 'CUSTOM_QAT'):
            self.assertEqual(
                name,
                arq_types.resource_class(
                    {'trait:CUSTOM_A': 'required', f'resources:{name}': '2'}
                ),
            )

    def test_an_unknown_state_is_refused(self):
        value = {'uuid': UUID, 'state': 'Asleep'}
        error = self.assertRaises(ValueError, arq_types.Arq.from_dict, value)
        self.assertIn('state is', str(error))

    @given(ARQS)
    def test_what_is_wrong_is_named(self, value):
        good = value.to_dict()
        for name, wrong, fault in (
            ('group', None, 'group is None, not an object'),
            ('group', {'resources:FPGA': 1}, "group['resources:FPGA'] is 1"),
            ('device_rp_uuid', [UUID], 'device_rp_uuid is ['),
            ('device_profile_group_id', True, 'group_id is True'),
            ('attach_handle', {}, 'attach_handle.uuid is missing'),
        ):
            error = self.assertRaises(
                ValueError, arq_types.Arq.from_dict, {**good, name: wrong}
            )
            self.assertIn(fault, str(error))

    def test_an_imported_group_may_ask_for_nothing(self):
        self.assertEqual('', arq_types.resource_class({'accel:x': '1'}))
