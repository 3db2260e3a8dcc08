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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import group_division
from nova_accel.model.profiles import matching
from nova_accel.model.profiles import provider_allocation

AMOUNTS = st.integers(1, device_profile.MAX_UNITS)


def a_group(amount, *required, **more):
    return device_profile.Group({'PGPU': amount}, frozenset(required), **more)


def an_allocation(rp_uuid, amount, *traits):
    return provider_allocation.ProviderAllocation(
        rp_uuid, {'PGPU': amount}, frozenset(traits)
    )


def amounts(groups):
    return [group.resources['PGPU'] for group in groups]


class TestParts(testtools.TestCase):
    def test_two_pools_of_four(self):
        self.assertEqual([4, 4], amounts(group_division.parts(a_group(8), 4)))

    def test_what_fits_is_not_divided(self):
        group = a_group(8)
        for largest in (8, 9):
            self.assertEqual((group,), group_division.parts(group, largest))

    def test_a_part_has_all_that_its_group_has(self):
        group = a_group(
            3,
            'CUSTOM_A',
            forbidden=frozenset({'CUSTOM_B'}),
            properties={'function_name': 'aes'},
        )
        for part in group_division.parts(group, 2):
            self.assertEqual(
                (group.required, group.forbidden, group.properties),
                (part.required, part.forbidden, part.properties),
            )

    def test_several_classes_are_not_divided(self):
        group = device_profile.Group({'PGPU': 8, 'VGPU': 1})
        self.assertEqual((group,), group_division.parts(group, 4))

    def test_nothing_suits(self):
        group = a_group(8)
        self.assertEqual((group,), group_division.parts(group, 0))

    @given(AMOUNTS, AMOUNTS)
    def test_few_and_nearly_equal(self, amount, largest):
        found = amounts(group_division.parts(a_group(amount), largest))
        self.assertEqual(amount, sum(found))
        self.assertLessEqual(max(found), largest)
        self.assertLessEqual(max(found) - min(found), 1)
        self.assertLess((len(found) - 1) * largest, amount)


class TestPlaceable(testtools.TestCase):
    def test_whole_and_in_parts(self):
        for amount, largest, expected in (
            (1, 1, [1]),
            (8, 8, [8]),
            (8, 4, [4, 4]),
            (8, 6, [4, 4]),
            (8, 2, [2, 2, 2, 2]),
            (9, 4, [3, 3, 3]),
        ):
            self.assertEqual(
                expected,
                amounts(group_division.placeable(0, a_group(amount), largest)),
            )

    def test_too_many_parts(self):
        for amount, largest, divided in (
            (2, 1, '2 groups of PGPU=1'),
            (8, 1, '8 groups of PGPU=1'),
            (9, 2, '5 groups of PGPU=2 at most'),
            (64, 15, '5 groups of PGPU=13 at most'),
        ):
            error = self.assertRaises(
                exceptions.NotFound,
                group_division.placeable,
                3,
                a_group(amount),
                largest,
            )
            fault = (
                f'no pool of devices has PGPU={amount}, which group 3 asks '
                f'for; the largest has {largest}: '
            )
            cure = f'make it {divided} in the device profile'
            self.assertEqual(f'{fault}{cure}', error.public)
            self.assertEqual(
                f'{fault}let devices share a larger pool ("pool": true in '
                f'[nova_accel] device_spec), or {cure}',
                str(error),
            )
            # In a larger pool it need not be divided.
            self.assertEqual(
                (a_group(amount),),
                tuple(group_division.placeable(3, a_group(amount), amount)),
            )

    def test_one_numa_node_is_not_divided(self):
        group = a_group(8, is_on_one_numa_node=True)
        self.assertEqual((group,), group_division.placeable(0, group, 8))
        error = self.assertRaises(
            exceptions.NotFound, group_division.placeable, 0, group, 4
        )
        self.assertEqual(
            'no NUMA node has PGPU=8, which group 0 asks for; the largest has '
            '4: make it 2 groups of PGPU=4 in the device profile',
            str(error),
        )


class TestPlaced(testtools.TestCase):
    def test_whole_groups(self):
        groups = [a_group(2), a_group(1, 'CUSTOM_A')]
        self.assertEqual(
            groups,
            group_division.placed(
                groups,
                [an_allocation('a', 2), an_allocation('b', 1, 'CUSTOM_A')],
            ),
        )

    def test_a_group_without_allocations_stays_whole(self):
        groups = [a_group(2)]
        self.assertEqual(groups, group_division.placed(groups, []))

    def test_parts_are_in_the_place_of_their_group(self):
        found = group_division.placed(
            [a_group(1), a_group(8, 'CUSTOM_A'), a_group(2)],
            [
                an_allocation('a', 4, 'CUSTOM_A'),
                an_allocation('b', 4, 'CUSTOM_A'),
                an_allocation('c', 3),
            ],
        )
        self.assertEqual([1, 4, 4, 2], amounts(found))
        self.assertEqual(
            ['c', 'a', 'b', 'c'],
            matching.assign(
                found,
                [
                    an_allocation('a', 4, 'CUSTOM_A'),
                    an_allocation('b', 4, 'CUSTOM_A'),
                    an_allocation('c', 3),
                ],
            ),
        )

    @given(AMOUNTS, AMOUNTS, st.data())
    def test_the_parts_that_nova_scheduler_made(self, amount, largest, data):
        """Whatever other groups have of the same pools."""
        group = a_group(amount)
        parts = group_division.parts(group, largest)
        others = [
            data.draw(st.integers(0, largest - part))
            for part in amounts(parts)
        ]
        allocations = [
            an_allocation(f'rp{number}', part + other)
            for number, (part, other) in enumerate(
                zip(amounts(parts), others, strict=True)
            )
        ]
        self.assertEqual(
            list(parts), group_division.placed([group], allocations)
        )
