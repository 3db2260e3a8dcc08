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
import dataclasses
import itertools

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import unit_choice

BITSTREAMS = ('bits-a', 'bits-b', 'bits-c')
TRAITS = ('CUSTOM_A', 'CUSTOM_B')


def deployable(number, free=1, total=None, sets=(), **fields):
    return free_units.FreeUnits(
        **{
            'deployable_uuid': f'deployable{number}',
            'rp_uuid': 'rp',
            'resource_class': 'FPGA',
            'traits': frozenset(),
            'free': free,
            'total': free if total is None else total,
            'sets': sets,
            **fields,
        }
    )


def group(amount=1, bitstream=None, **fields):
    return device_profile.Group(
        {'FPGA': amount},
        properties={} if bitstream is None else {'bitstream_id': bitstream},
        **fields,
    )


def host_of_eight(*free):
    """GPUs in pairs and quads, of which some are free."""
    return [
        deployable(
            number,
            int(number in free),
            1,
            (f'quad{number // 4}', f'pair{number // 2}'),
        )
        for number in range(8)
    ]


def chosen(asked, pool, **arguments):
    """The numbers of the chosen deployables."""
    choice = unit_choice.choose(asked, pool, **arguments)
    return sorted(
        int(uuid.removeprefix('deployable')) for uuid in choice.units
    )


@st.composite
def pools(draw, most_units=3):
    return [
        deployable(
            number,
            draw(st.integers(0, total)),
            total,
            draw(
                st.sampled_from(
                    [
                        (),
                        ('numa0',),
                        ('numa1',),
                        ('numa0', 'card0'),
                        ('numa0', 'card1'),
                        ('numa1', 'card2'),
                    ]
                )
            ),
            resource_class=draw(st.sampled_from(['FPGA', 'VGPU'])),
            traits=draw(st.frozensets(st.sampled_from(TRAITS))),
            bitstream_id=draw(st.none() | st.sampled_from(BITSTREAMS)),
            is_degraded=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 6)))
        for total in [draw(st.integers(1, most_units))]
    ]


GROUPS = st.builds(
    device_profile.Group,
    resources=st.dictionaries(
        st.sampled_from(['FPGA', 'VGPU']), st.integers(1, 4), min_size=1
    ),
    required=st.frozensets(st.sampled_from(TRAITS), max_size=1),
    forbidden=st.frozensets(st.sampled_from(TRAITS), max_size=1),
    properties=st.sampled_from(
        [{}, *({'bitstream_id': name} for name in BITSTREAMS)]
    ),
)
DEMANDS = st.dictionaries(st.sampled_from(BITSTREAMS), st.floats(0, 10))
POLICIES = st.sampled_from(unit_choice.UnitPolicy)


def suiting(asked, pool, resource_class):
    return [
        each
        for each in pool
        if each.resource_class == resource_class
        and asked.required <= each.traits
        and not asked.forbidden & each.traits
    ]


class TestAnyChoice(testtools.TestCase):
    @hypothesis.given(GROUPS, pools(), POLICIES, DEMANDS)
    def test_exact_and_suiting_or_none(self, asked, pool, policy, demand):
        choice = unit_choice.choose(asked, pool, policy, demand)
        enough = all(
            sum(each.free for each in suiting(asked, pool, name)) >= amount
            for name, amount in asked.resources.items()
        )
        self.assertEqual(enough, choice is not None)
        if choice is None:
            return
        for name, amount in asked.resources.items():
            usable = {
                each.deployable_uuid: each
                for each in suiting(asked, pool, name)
            }
            taken = {
                uuid: amount
                for uuid, amount in choice.units.items()
                if uuid in usable
            }
            self.assertEqual(amount, sum(taken.values()))
            for uuid, amount in taken.items():
                self.assertIn(amount, range(1, usable[uuid].free + 1))
        self.assertLessEqual(
            choice.units.keys(), {each.deployable_uuid for each in pool}
        )
        self.assertLess(len(choice.why), 255)

    @hypothesis.given(GROUPS, pools(), POLICIES, DEMANDS, st.randoms())
    def test_the_cost_does_not_depend_on_the_order(
        self, asked, pool, policy, demand, chance
    ):
        choice = unit_choice.choose(asked, pool, policy, demand)
        chance.shuffle(pool)
        again = unit_choice.choose(asked, pool, policy, demand)
        if choice is None:
            self.assertIsNone(again)
            return
        # The order of the summands matters for floats, the order of parts
        # where several sets have to be touched.
        self.assertEqual(choice.cost[:3], again.cost[:3])
        self.assertAlmostEqual(choice.cost.missed, again.cost.missed)

    @hypothesis.given(GROUPS, pools(), DEMANDS)
    def test_no_other_units_are_of_a_better_grade(self, asked, pool, demand):
        choice = unit_choice.choose(asked, pool, demand=demand)
        if choice is None:
            return
        wanted = asked.properties.get('bitstream_id')

        def grade(each):
            held = each.bitstream_id
            is_erased = held not in (None, wanted)
            return (
                each.is_degraded,
                wanted not in (None, held),
                is_erased,
                demand.get(held, 0.0) if is_erased else 0.0,
            )

        for name in asked.resources:
            usable = suiting(asked, pool, name)
            taken = [
                grade(each)
                for each in usable
                for _unit in range(choice.units.get(each.deployable_uuid, 0))
            ]
            left = [
                grade(each)
                for each in usable
                if each.free > choice.units.get(each.deployable_uuid, 0)
            ]
            if taken and left:
                self.assertLessEqual(max(taken), min(left))

    @hypothesis.given(
        st.sets(st.integers(0, 7), min_size=1), st.integers(1, 8)
    )
    def test_breaks_no_larger_set_than_needed(self, free, amount):
        """No subset of the free ones is closer or breaks less."""
        pool = host_of_eight(*free)
        choice = unit_choice.choose(group(amount), pool)
        if amount > len(free):
            self.assertIsNone(choice)
            return
        sets = [range(8), range(4), range(4, 8)]
        sets += [range(first, first + 2) for first in range(0, 8, 2)]
        sets += [range(number, number + 1) for number in range(8)]

        def cost(taken):
            return (
                min(len(each) for each in sets if taken <= set(each)),
                max(
                    len(each)
                    for each in sets
                    if taken & set(each)
                    and (free >= set(each) or len(each) == 1)
                ),
            )

        best = min(
            cost(set(taken)) for taken in itertools.combinations(free, amount)
        )
        found = set(chosen(group(amount), pool))
        self.assertEqual(best[0], cost(found)[0])
        if amount in (1, 2, 4, 8):
            self.assertEqual(best, cost(found))
        self.assertEqual(cost(found), (choice.cost.span, choice.cost.broken))


class TestRegions(testtools.TestCase):
    def test_order(self):
        """Held, empty, least wanted, most wanted; any healthy one first."""
        pool = [
            deployable(0, bitstream_id='bits-a', is_degraded=True),
            deployable(1, bitstream_id='bits-c'),
            deployable(2, bitstream_id='bits-b'),
            deployable(3),
            deployable(4, bitstream_id='bits-a'),
        ]
        demand = {'bits-b': 0.1, 'bits-c': 2.0}
        order = []
        while pool:
            [number] = chosen(group(bitstream='bits-a'), pool, demand=demand)
            order.append(number)
            pool = [
                each
                for each in pool
                if each.deployable_uuid != f'deployable{number}'
            ]
        self.assertEqual([4, 3, 2, 1, 0], order)

    def test_any_region_is_an_empty_one(self):
        pool = [
            deployable(0, bitstream_id='bits-a'),
            deployable(1),
            deployable(2, bitstream_id='bits-b'),
        ]
        demand = {'bits-a': 2.0, 'bits-b': 1.0}
        self.assertEqual([1], chosen(group(), pool, demand=demand))
        self.assertEqual([1, 2], chosen(group(2), pool, demand=demand))

    def test_a_held_bitstream_is_worth_a_broken_set(self):
        pool = [
            deployable(0, sets=('numa0',), bitstream_id='bits-a'),
            deployable(1, sets=('numa0',)),
            deployable(2, sets=('numa1',)),
            deployable(3, free=0, total=1, sets=('numa1',)),
        ]
        self.assertEqual([0], chosen(group(bitstream='bits-a'), pool))
        self.assertEqual([2], chosen(group(bitstream='bits-b'), pool))

    def test_why(self):
        for held, why in (
            ('bits-a', 'the region held the bitstream; others fitted: 0'),
            (None, 'an empty region was chosen; others fitted: 0'),
            (
                'bits-b',
                'the region with the least wanted bitstream was chosen; '
                'others fitted: 0',
            ),
        ):
            choice = unit_choice.choose(
                group(bitstream='bits-a'), [deployable(0, bitstream_id=held)]
            )
            self.assertEqual(why, choice.why)


class TestSets(testtools.TestCase):
    def test_buddies(self):
        """Pairs and quads stay whole as long as something else is free."""
        for amount, free, expected in (
            (1, (0, 1, 2, 4, 5, 6, 7), [2]),
            (1, (0, 1, 4, 5, 6, 7), [0]),
            (1, (0, 1, 4, 6, 7), [4]),
            (1, (0, 2, 3, 4), [4]),
            (2, (0, 2, 3, 4, 5, 6, 7), [2, 3]),
            (2, (0, 2, 4, 5, 6, 7), [4, 5]),
            (4, (0, 1, 2, 4, 5, 6, 7), [4, 5, 6, 7]),
            (8, range(8), list(range(8))),
        ):
            self.assertEqual(
                expected, chosen(group(amount), host_of_eight(*free))
            )

    def test_between_hosts(self):
        """The fullest host that breaks no larger set is the best."""
        costs = [
            unit_choice.choose(group(2), host_of_eight(*free)).cost
            for free in (
                (0, 1),
                (0, 1, 2),
                (0, 1, 2, 4, 6),
                (0, 1, 2, 3),
                range(8),
                (0, 2),
            )
        ]
        self.assertEqual(sorted(costs), costs)
        self.assertEqual(len(costs), len(set(costs)))

    def test_no_fresh_card_is_carved(self):
        cards = [
            deployable(0, 4, 4, ('numa0', 'card0')),
            deployable(1, 1, 4, ('numa0', 'card1')),
            deployable(2, 3, 4, ('numa1', 'card2')),
        ]
        self.assertEqual([1], chosen(group(), cards))
        self.assertEqual([2], chosen(group(2), cards))
        self.assertEqual([0], chosen(group(4), cards))

    def test_spread(self):
        cards = [
            deployable(0, 2, 4),
            deployable(1, 4, 4),
            deployable(2, 3, 4),
        ]
        spread = unit_choice.UnitPolicy.SPREAD
        self.assertEqual([1], chosen(group(), cards, policy=spread))
        full, empty = (
            unit_choice.choose(group(), [deployable(0, free, 4)], spread).cost
            for free in (1, 4)
        )
        self.assertLess(empty, full)

    def test_why(self):
        for free, why in (
            ((0, 2, 3), 'no larger free set was broken; others fitted: 2'),
            (range(8), 'a free set of 8 was broken; others fitted: 7'),
        ):
            self.assertEqual(
                why,
                unit_choice.choose(group(), host_of_eight(*free)).why,
            )
        degraded = unit_choice.choose(
            group(), [deployable(0, is_degraded=True)]
        )
        self.assertEqual(
            'no larger free set was broken; too few healthy units were free; '
            'others fitted: 0',
            degraded.why,
        )


COSTS = st.builds(
    unit_choice.Cost,
    *(st.integers(0, 64),) * 4,
    st.integers(0, 1000).map(float),
    *(st.integers(0, 10000),) * 2,
    st.integers(-10000, 10000),
)


class TestPrice(testtools.TestCase):
    @hypothesis.given(COSTS, COSTS)
    def test_order(self, one, other):
        self.assertEqual(one < other, one.price < other.price)
        self.assertLess(one.price, unit_choice.HIGHEST_PRICE)

    @hypothesis.given(st.lists(COSTS, min_size=2, max_size=2), COSTS)
    def test_sum(self, pair, other):
        """Two costs are compared with one as their sums would be."""
        total = unit_choice.Cost(*map(sum, zip(*pair, strict=True)))
        self.assertEqual(total.price, sum(cost.price for cost in pair))
        self.assertEqual(total < other, total.price < other.price)


class TestPolicyOf(testtools.TestCase):
    def test_first_class(self):
        asked = device_profile.Group({'VGPU': 1, 'FPGA': 1})
        for policies, expected in (
            ({}, 'pack'),
            ({'FPGA': 'spread'}, 'spread'),
            ({'VGPU': 'spread'}, 'pack'),
        ):
            self.assertEqual(expected, unit_choice.policy_of(asked, policies))


class TestOneNumaNode(testtools.TestCase):
    def pool(self, *free):
        """The free units of each NUMA node; None is a node no one knows."""
        return [
            deployable(
                number, units, 4, free_units.sets_of(node, f'card{number}')
            )
            for number, (node, units) in enumerate(free)
        ]

    def test_units_of_several_nodes_do_not_serve(self):
        pool = self.pool((0, 1), (1, 1), (None, 1))
        self.assertIsNone(
            unit_choice.choose(group(2, is_on_one_numa_node=True), pool)
        )
        self.assertEqual([0, 1], chosen(group(2), pool))

    def test_several_devices_of_one_node_do(self):
        self.assertEqual(
            [1, 2],
            chosen(
                group(2, is_on_one_numa_node=True),
                self.pool((0, 1), (1, 1), (1, 1)),
            ),
        )

    def test_a_machine_without_numa_is_one_node(self):
        self.assertEqual(
            [0, 1],
            chosen(
                group(2, is_on_one_numa_node=True),
                self.pool((None, 1), (None, 1)),
            ),
        )

    @hypothesis.given(pools(), st.integers(1, 4))
    def test_what_is_chosen_is_on_one(self, pool, amount):
        asked = group(amount, is_on_one_numa_node=True)
        choice = unit_choice.choose(asked, pool)
        most = collections.Counter()
        for units in pool:
            if units.resource_class == 'FPGA':
                most[units.numa_node] += units.free
        self.assertEqual(
            max(most.values(), default=0) >= amount, choice is not None
        )
        if choice is not None:
            self.assertEqual(amount, sum(choice.units.values()))
            nodes = {
                units.numa_node
                for units in pool
                if choice.units.get(units.deployable_uuid)
            }
            self.assertEqual(1, len(nodes))


class TestNearCells(testtools.TestCase):
    """Groups that want units on the NUMA nodes of the guest's cells."""

    @hypothesis.given(
        GROUPS,
        pools(),
        POLICIES,
        st.sampled_from(device_profile.NumaAffinity),
        st.frozensets(st.sampled_from(['numa0', 'numa1', 'numa2'])),
    )
    def test_any_choice(self, asked, pool, policy, affinity, nodes):
        asked = dataclasses.replace(asked, numa_affinity=affinity)
        choice = unit_choice.choose(asked, pool, policy, near=nodes)
        near = [each for each in pool if not nodes or each.numa_node in nodes]
        if affinity == 'required':
            self.assertEqual(
                unit_choice.choose(asked, near, policy) is None, choice is None
            )
        else:
            self.assertEqual(
                unit_choice.choose(asked, pool, policy) is None, choice is None
            )
        if choice is None:
            return
        far = [
            amount
            for each in pool
            for amount in [choice.units.get(each.deployable_uuid, 0)]
            if each not in near
        ]
        self.assertEqual(sum(far), choice.cost.far)
        if affinity == 'required':
            self.assertEqual(0, sum(far))

    @hypothesis.given(GROUPS, pools(), POLICIES)
    def test_without_cells_nothing_changes(self, asked, pool, policy):
        found = unit_choice.choose(asked, pool, policy)
        for affinity in device_profile.NumaAffinity:
            wanted = dataclasses.replace(asked, numa_affinity=affinity)
            self.assertEqual(found, unit_choice.choose(wanted, pool, policy))
        self.assertEqual(
            found,
            unit_choice.choose(asked, pool, policy, near=frozenset({'numa1'})),
        )

    def test_near_before_a_whole_set(self):
        pool = [
            deployable(0, sets=('numa0',)),
            deployable(1, sets=('numa0',)),
            deployable(2, sets=('numa1',)),
        ]
        for affinity, expected in (('preferred', [0, 2]), (None, [0, 1])):
            self.assertEqual(
                expected,
                chosen(
                    group(2, numa_affinity=affinity),
                    pool,
                    near=frozenset({'numa1'}),
                ),
            )

    def test_one_node(self):
        pool = [
            deployable(number, sets=(f'numa{number % 2}',))
            for number in range(4)
        ]
        asked = group(
            2,
            is_on_one_numa_node=True,
            numa_affinity=device_profile.NumaAffinity.PREFERRED,
        )
        for node in (0, 1):
            self.assertEqual(
                [node, node + 2],
                chosen(asked, pool, near=frozenset({f'numa{node}'})),
            )
