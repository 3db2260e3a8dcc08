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

import collections
import itertools

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import matching
from nova_accel.model.profiles import provider_allocation

CLASSES = ['FPGA', 'VGPU']
TRAITS = ['CUSTOM_A', 'CUSTOM_B']

GROUPS = st.builds(
    device_profile.Group,
    resources=st.dictionaries(
        st.sampled_from(CLASSES), st.integers(1, 2), min_size=1
    ),
    required=st.frozensets(st.sampled_from(TRAITS), max_size=1),
    forbidden=st.frozensets(st.sampled_from(TRAITS), max_size=1),
)


@st.composite
def any_problems(draw):
    """Groups, allocations and costs that seldom fit each other."""
    groups = draw(st.lists(GROUPS, max_size=4))
    allocated = draw(
        st.lists(
            st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 3)),
            max_size=3,
        )
    )
    return groups, *draw(drawn_allocations(len(groups), allocated))


@st.composite
def likely_problems(draw):
    """Allocations that are the groups', dealt to the providers."""
    groups = draw(st.lists(GROUPS, max_size=5))
    allocated = [
        collections.Counter() for _number in range(draw(st.integers(1, 4)))
    ]
    for group in groups:
        draw(st.sampled_from(allocated)).update(group.resources)
    return groups, *draw(drawn_allocations(len(groups), allocated))


@st.composite
def drawn_allocations(draw, group_count, allocated):
    allocations = [
        provider_allocation.ProviderAllocation(
            f'rp{number}', each, draw(st.frozensets(st.sampled_from(TRAITS)))
        )
        for number, each in enumerate(allocated)
    ]
    costs = {
        (index, allocation.rp_uuid): draw(st.integers(0, 3))
        for index in range(group_count)
        for allocation in allocations
    }
    return allocations, costs


PROBLEMS = any_problems() | likely_problems()


def is_right(groups, allocations, choice):
    """Every group suits its provider and nothing is left or overdrawn."""
    taken = [collections.Counter() for _allocation in allocations]
    for group, position in zip(groups, choice, strict=True):
        traits = allocations[position].traits
        if group.required - traits or group.forbidden & traits:
            return False
        taken[position].update(group.resources)
    return all(
        taken[position] == collections.Counter(allocation.resources)
        for position, allocation in enumerate(allocations)
    )


def by_brute_force(groups, allocations, price):
    """The first of the cheapest right choices, or None."""
    choices = itertools.product(range(len(allocations)), repeat=len(groups))
    right = [
        choice for choice in choices if is_right(groups, allocations, choice)
    ]
    return min(
        right,
        default=None,
        key=lambda choice: sum(
            price(index, allocations[position].rp_uuid)
            for index, position in enumerate(choice)
        ),
    )


class TestAssign(testtools.TestCase):
    def check(self, groups, allocations, *cost):
        price = cost[0] if cost else lambda index, uuid: 0
        wanted = by_brute_force(groups, allocations, price)
        if wanted is None:
            self.assertRaises(
                exceptions.NoAssignment,
                matching.assign,
                groups,
                allocations,
                *cost,
            )
            return
        self.assertEqual(
            [allocations[position].rp_uuid for position in wanted],
            matching.assign(groups, allocations, *cost),
        )

    @given(PROBLEMS)
    def test_as_brute_force_without_costs(self, problem):
        groups, allocations, _costs = problem
        self.check(groups, allocations)

    @given(PROBLEMS)
    def test_as_brute_force_with_costs(self, problem):
        groups, allocations, costs = problem
        self.check(groups, allocations, lambda index, uuid: costs[index, uuid])

    @given(likely_problems())
    def test_the_cost_is_the_least(self, problem):
        groups, allocations, costs = problem
        try:
            found = matching.assign(
                groups, allocations, lambda index, uuid: costs[index, uuid]
            )
        except exceptions.NoAssignment:
            return
        position = {
            allocation.rp_uuid: number
            for number, allocation in enumerate(allocations)
        }
        choice = [position[uuid] for uuid in found]
        self.assertTrue(is_right(groups, allocations, choice))
        total = sum(costs[pair] for pair in enumerate(found))
        for other in itertools.product(
            range(len(allocations)), repeat=len(groups)
        ):
            if is_right(groups, allocations, other):
                self.assertLessEqual(
                    total,
                    sum(
                        costs[index, allocations[number].rp_uuid]
                        for index, number in enumerate(other)
                    ),
                )

    def test_greed_would_fail(self):
        """The first group must leave the provider that the second needs."""
        groups = [
            device_profile.Group({'FPGA': 1}),
            device_profile.Group({'FPGA': 1}, frozenset({'CUSTOM_A'})),
        ]
        allocations = [
            provider_allocation.ProviderAllocation(
                'a', {'FPGA': 1}, frozenset({'CUSTOM_A'})
            ),
            provider_allocation.ProviderAllocation(
                'b', {'FPGA': 1}, frozenset()
            ),
        ]
        self.assertEqual(['b', 'a'], matching.assign(groups, allocations))

    def test_each_group_has_a_kind_of_its_own(self):
        traits = [frozenset({trait}) for trait in TRAITS]
        groups = [device_profile.Group({'FPGA': 1}, each) for each in traits]
        allocations = [
            provider_allocation.ProviderAllocation(uuid, {'FPGA': 1}, each)
            for uuid, each in zip('ab', traits, strict=True)
        ]
        for step in (1, -1):
            self.assertEqual(
                ['a', 'b'][::step],
                matching.assign(groups[::step], allocations),
            )

    def test_cheapest_then_first(self):
        groups = [device_profile.Group({'FPGA': 1})] * 2
        allocations = [
            provider_allocation.ProviderAllocation(
                uuid, {'FPGA': 1}, frozenset()
            )
            for uuid in ('z', 'a')
        ]
        self.assertEqual(['z', 'a'], matching.assign(groups, allocations))
        self.assertEqual(
            ['a', 'z'],
            matching.assign(
                groups,
                allocations,
                lambda index, uuid: (index, uuid) == (0, 'z'),
            ),
        )

    def test_whether_allocations_serve_a_profile(self):
        fpgas = [
            provider_allocation.ProviderAllocation(
                uuid, {'FPGA': 1}, frozenset({'CUSTOM_A'})
            )
            for uuid in 'xy'
        ]
        for groups, expected in (
            ([device_profile.Group({'FPGA': 1})] * 2, True),
            # In parts.
            ([device_profile.Group({'FPGA': 2})], True),
            ([device_profile.Group({'FPGA': 1})], False),
            ([device_profile.Group({'FPGA': 1}, frozenset('B'))] * 2, False),
            ([], False),
        ):
            self.assertEqual(expected, matching.serves(groups, fpgas))

    def test_nothing_of_nothing(self):
        self.assertEqual([], matching.assign([], []))

    def test_what_no_group_takes_is_an_error(self):
        error = self.assertRaises(
            exceptions.NoAssignment,
            matching.assign,
            [],
            [
                provider_allocation.ProviderAllocation(
                    'rp1', {'FPGA': 1}, frozenset()
                )
            ],
        )
        self.assertIn("rp1 {'FPGA': 1}", str(error))

    def test_the_error_names_what_was_allocated(self):
        group = device_profile.Group({'FPGA': 1}, frozenset({'CUSTOM_A'}))
        error = self.assertRaises(
            exceptions.NoAssignment,
            matching.assign,
            [group] * 2,
            [
                provider_allocation.ProviderAllocation(
                    'rp1', {'FPGA': 2}, frozenset()
                ),
                provider_allocation.ProviderAllocation(
                    'rp2', {'VGPU': 1}, frozenset()
                ),
            ],
        )
        for part in ('2 groups', "rp1 {'FPGA': 2}", "rp2 {'VGPU': 1}"):
            self.assertIn(part, str(error))
        error = self.assertRaises(
            exceptions.NoAssignment, matching.assign, [group], []
        )
        self.assertIn('no provider', str(error))

    def test_a_full_host_is_not_searched_by_brute_force(self):
        """Twelve to the twelfth choices; states that repeat are not."""
        groups = [device_profile.Group({'PGPU': 1})] * 12
        allocations = [
            provider_allocation.ProviderAllocation(
                str(number), {'PGPU': 1}, frozenset()
            )
            for number in range(12)
        ]
        self.assertEqual(
            [allocation.rp_uuid for allocation in reversed(allocations)],
            matching.assign(
                groups,
                allocations,
                lambda index, uuid: (index + int(uuid) - 11) ** 2,
            ),
        )

    def test_providers_that_are_not_pooled(self):
        """Each with its own allocation: two to the 64th power of states."""
        groups = [device_profile.Group({'PGPU': 1})] * 64
        allocations = [
            provider_allocation.ProviderAllocation(
                str(number), {'PGPU': 1}, frozenset({f'CUSTOM_{number}'})
            )
            for number in range(64)
        ]
        self.assertEqual(
            [allocation.rp_uuid for allocation in allocations],
            matching.assign(groups, allocations),
        )

    def test_none_for_providers_that_are_not_pooled(self):
        """The last group suits none, which each state would find out."""
        groups = [device_profile.Group({'PGPU': 1})] * 31 + [
            device_profile.Group({'PGPU': 1}, frozenset({'CUSTOM_A'}))
        ]
        allocations = [
            provider_allocation.ProviderAllocation(
                str(number), {'PGPU': 1}, frozenset({f'CUSTOM_{number}'})
            )
            for number in range(32)
        ]
        self.assertRaises(
            exceptions.NoAssignment, matching.assign, groups, allocations
        )

    def test_groups_of_two_kinds_and_amounts(self):
        groups = [
            device_profile.Group({'VGPU': 1}),
            device_profile.Group({'VGPU': 2}, frozenset({'CUSTOM_A'})),
        ] * 12
        allocations = [
            provider_allocation.ProviderAllocation(
                str(number), {'VGPU': 3}, frozenset({'CUSTOM_A'})
            )
            for number in range(12)
        ]
        found = matching.assign(groups, allocations)
        self.assertEqual(
            {str(number): 2 for number in range(12)},
            collections.Counter(found),
        )

    def test_too_many_ways(self):
        """It ends, and says what to do."""
        groups = [
            device_profile.Group(
                {'PGPU': 1}, forbidden=frozenset({f'CUSTOM_{number}'})
            )
            for number in range(23)
        ] + [device_profile.Group({'PGPU': 1}, frozenset({'CUSTOM_NOBODY'}))]
        allocations = [
            provider_allocation.ProviderAllocation(
                str(number), {'PGPU': 1}, frozenset({f'CUSTOM_{number}'})
            )
            for number in range(24)
        ]
        error = self.assertRaises(
            exceptions.NoAssignment, matching.assign, groups, allocations
        )
        self.assertIn('too many ways', str(error))
