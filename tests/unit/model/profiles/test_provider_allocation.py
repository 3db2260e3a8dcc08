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

from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation

TRAITS = st.frozensets(st.sampled_from(['CUSTOM_A', 'CUSTOM_B']))


class TestSuits(testtools.TestCase):
    @given(TRAITS, TRAITS, TRAITS)
    def test_all_required_and_none_forbidden(
        self, required, forbidden, traits
    ):
        group = device_profile.Group({'FPGA': 1}, required, forbidden)
        allocation = provider_allocation.ProviderAllocation('rp', {}, traits)
        self.assertEqual(
            all(trait in traits for trait in required)
            and not any(trait in traits for trait in forbidden),
            allocation.suits(group),
        )


class TestWithout(testtools.TestCase):
    def without(self, held):
        return [
            (allocation.rp_uuid, allocation.resources)
            for allocation in provider_allocation.without(
                [
                    provider_allocation.ProviderAllocation(
                        'a', {'FPGA': 2, 'VGPU': 1}, frozenset()
                    ),
                    provider_allocation.ProviderAllocation(
                        'b', {'FPGA': 1}, frozenset()
                    ),
                ],
                held,
            )
        ]

    def test_nothing_is_held(self):
        self.assertEqual(
            [('a', {'FPGA': 2, 'VGPU': 1}), ('b', {'FPGA': 1})],
            self.without({}),
        )

    def test_some_of_it_is_held(self):
        self.assertEqual(
            [('a', {'FPGA': 1}), ('b', {'FPGA': 1})],
            self.without(
                {
                    ('a', 'FPGA'): 1,
                    ('a', 'VGPU'): 1,
                    ('b', 'VGPU'): 1,
                    ('c', 'FPGA'): 1,
                }
            ),
        )

    def test_a_provider_of_which_all_is_held(self):
        self.assertEqual(
            [('a', {'FPGA': 2, 'VGPU': 1})], self.without({('b', 'FPGA'): 2})
        )


class TestWireForm(testtools.TestCase):
    @given(
        st.lists(
            st.builds(
                provider_allocation.ProviderAllocation,
                rp_uuid=st.uuids().map(str),
                resources=st.dictionaries(
                    st.sampled_from(['FPGA', 'VGPU']), st.integers(1, 1024)
                ),
                traits=TRAITS,
            ),
            unique_by=lambda allocation: allocation.rp_uuid,
        ).map(tuple)
    )
    def test_there_and_back(self, allocations):
        sent = json.loads(json.dumps(provider_allocation.to_dict(allocations)))
        self.assertEqual(allocations, provider_allocation.from_dict(sent))

    def test_the_form_in_the_body(self):
        self.assertEqual(
            {
                'rp': {
                    'allocated': {'FPGA': 2},
                    'traits': ['CUSTOM_A', 'CUSTOM_B'],
                }
            },
            provider_allocation.to_dict(
                [
                    provider_allocation.ProviderAllocation(
                        'rp', {'FPGA': 2}, frozenset({'CUSTOM_B', 'CUSTOM_A'})
                    )
                ]
            ),
        )

    def test_amounts_become_integers(self):
        (allocation,) = provider_allocation.from_dict(
            {'rp': {'allocated': {'FPGA': 2.0}, 'traits': []}}
        )
        self.assertIs(int, type(allocation.resources['FPGA']))
