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

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model import naming
from nova_accel.model.fpga import stocking
from nova_accel.model.profiles import device_profile

A = 'a0000000-0000-4000-8000-000000000000'
B = 'b0000000-0000-4000-8000-000000000000'
C = 'c0000000-0000-4000-8000-000000000000'
TYPES = [
    naming.region_trait('FPGA', 'Intel', f'{number}' * 8 + A[8:])
    for number in (1, 2)
]
FUNCTION = naming.function_trait('FPGA', 'Intel', A)


def region(number=0, holds=None, ordered=None, host=None, **fields):
    return stocking.StockedRegion(
        **{
            'device_uuid': f'device{number}',
            'name': 'region0',
            'hostname': host or f'host{number}',
            'service_host': 'service',
            'deployable_uuid': f'deployable{number}',
            'resource_class': 'FPGA',
            'traits': frozenset({TYPES[0]}),
            'bitstream_id': holds,
            'ordered': ordered and stocking.Ordered(*ordered),
            **fields,
        }
    )


def group(bitstream_id, *required, forbidden=(), resource_class='FPGA'):
    return device_profile.Group(
        {resource_class: 1},
        frozenset(required or TYPES[:1]),
        frozenset(forbidden),
        {} if bitstream_id is None else {'bitstream_id': bitstream_id},
    )


def orders(regions, groups=None, demand=None, most=100):
    """(Deployable uuid, bitstream) of each order."""
    stock = stocking.RegionStock(
        regions,
        [group(A), group(B)] if groups is None else groups,
        {A: 10.0, B: 5.0} if demand is None else demand,
    )
    return [
        (each.region.deployable_uuid, each.bitstream_id)
        for each in stock.orders(most)
    ]


class TestOrders(testtools.TestCase):
    def test_empty_regions_get_what_is_wanted_most(self):
        self.assertEqual(
            [('deployable0', A), ('deployable1', A), ('deployable2', B)],
            orders([region(0), region(1), region(2)]),
        )

    def test_no_more_than_may_be(self):
        self.assertEqual(
            [('deployable0', A)], orders([region(0), region(1)], most=1)
        )

    def test_one_for_each_host(self):
        self.assertEqual(
            [('deployable0', A), ('deployable2', A)],
            orders(
                [
                    region(0, host='one'),
                    region(1, host='one'),
                    region(2, host='two'),
                ]
            ),
        )

    def test_what_nobody_wants_is_replaced(self):
        self.assertEqual(
            [('deployable1', A)],
            orders([region(0, B), region(1, C)], demand={A: 5.0, B: 5.0}),
        )

    def test_what_is_wanted_stays(self):
        self.assertEqual([], orders([region(0, A), region(1, A)]))

    def test_only_bitstreams_of_profiles(self):
        self.assertEqual(
            [('deployable0', B)],
            orders([region()], groups=[group(B), group(None)]),
        )
        self.assertEqual([], orders([region()], groups=[]))

    def test_nothing_is_wanted(self):
        self.assertEqual([], orders([region()], demand={}))

    def test_a_type_that_the_profile_does_not_require(self):
        self.assertEqual(
            [],
            orders([region()], groups=[group(A, 'CUSTOM_OTHER')]),
        )
        without = region(traits=frozenset({'CUSTOM_OTHER'}))
        self.assertEqual(
            [('deployable0', A)],
            orders([without], groups=[group(A, 'CUSTOM_OTHER')]),
        )

    def test_only_regions_that_the_group_gets(self):
        for wrong in (
            group(A, TYPES[1]),
            group(A, TYPES[0], 'CUSTOM_OTHER'),
            group(A, TYPES[0], forbidden=TYPES[:1]),
            group(A, resource_class='CUSTOM_FPGA'),
        ):
            self.assertEqual([], orders([region()], groups=[wrong]))

    def test_each_kind_of_region_has_its_share(self):
        other = frozenset({TYPES[1]})
        self.assertEqual(
            [('deployable0', A), ('deployable2', B)],
            orders(
                [region(0), region(1), region(2, traits=other)],
                groups=[group(A), group(B, TYPES[1])],
                most=2,
            ),
        )

    def test_the_function_that_it_has_makes_no_other_kind(self):
        self.assertEqual(
            [],
            orders(
                [
                    region(0, A, traits=frozenset({TYPES[0], FUNCTION})),
                    region(1, B),
                ]
            ),
        )

    def test_what_is_ordered_counts_as_there(self):
        self.assertEqual(
            [('deployable1', B)],
            orders(
                [region(0, ordered=(A, 60)), region(1)],
                demand={A: 5.0, B: 5.0},
            ),
        )

    def test_a_region_has_a_pause_after_an_order(self):
        late = stocking.DUE_S + 1
        self.assertEqual([], orders([region(0, ordered=(A, late))]))

    def test_a_bitstream_that_gets_nowhere_is_given_up(self):
        late = stocking.DUE_S + 1
        tried = [region(0, ordered=(A, late)), region(1, ordered=(A, late))]
        self.assertEqual(
            [('deployable2', B)], orders([*tried, region(2)], most=1)
        )
        # Once is a fault of the region.
        self.assertEqual(
            [('deployable2', A)], orders([*tried[1:], region(2)], most=1)
        )

    @hypothesis.given(
        st.lists(
            st.tuples(
                st.sampled_from([None, A, B, C]),
                st.sampled_from([None, (A, 60), (B, 2000)]),
                st.sampled_from(['one', 'two', 'three']),
            ),
            max_size=12,
        ),
        st.dictionaries(st.sampled_from([A, B, C]), st.floats(0.01, 1e6)),
        st.integers(0, 4),
    )
    def test_rules_that_always_hold(self, found, demand, most):
        regions = [
            region(number, holds, ordered, host)
            for number, (holds, ordered, host) in enumerate(found)
        ]
        told = stocking.RegionStock(
            regions, [group(A), group(B)], demand
        ).orders(most)
        self.assertLessEqual(len(told), most)
        hosts = [order.region.hostname for order in told]
        self.assertEqual(len(set(hosts)), len(hosts))
        for order in told:
            self.assertIn(order.region, regions)
            self.assertIsNone(order.region.ordered)
            self.assertIn(order.bitstream_id, {A, B} & demand.keys())
            self.assertNotEqual(order.bitstream_id, order.region.bitstream_id)


class TestAddCleaned(testtools.TestCase):
    def added(self, regions, *more, demand):
        stock = stocking.RegionStock(regions, [group(A), group(B)], demand)
        return [stock.add_cleaned(each) for each in more]

    def test_what_is_short(self):
        self.assertEqual(
            [B], self.added([region(0, A)], region(1), demand={A: 6, B: 5})
        )

    def test_those_before_count(self):
        self.assertEqual(
            [A, B, A, A],
            self.added([], *map(region, range(4)), demand={A: 6.0, B: 3.5}),
        )

    def test_nothing_is_wanted(self):
        self.assertEqual([None], self.added([], region(), demand={}))

    def test_a_kind_that_nobody_wants(self):
        other = dataclasses.replace(region(), traits=frozenset({TYPES[1]}))
        self.assertEqual([None], self.added([], other, demand={A: 1.0}))
