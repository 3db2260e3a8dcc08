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
import datetime
import itertools

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.cards import shared_card
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import handle_stock
from unit.model.cards import slices

SLOTS = [
    handle_stock.Slot('compute-1', f'rp-{provider}', resource_class)
    for provider in range(2)
    for resource_class in ('FPGA', 'VGPU')
]


def kind(slot, free, number=0, **fields):
    name = f'{slot.rp_uuid} {slot.resource_class} {number}'
    return handle_stock.HandleKind(
        free_units.FreeUnits(
            name,
            slot.rp_uuid,
            slot.resource_class,
            frozenset(),
            free,
            free,
            **fields,
        ),
        [f'{name} {handle}' for handle in range(free)],
    )


def stock(*kinds, unusable=None, policies=None, near=frozenset()):
    """The stock of kinds, each of which is given with its slot."""
    of_slots = {}
    for slot, each in kinds:
        of_slots.setdefault(slot, []).extend([] if each is None else [each])
    return handle_stock.HandleStock(
        of_slots, unusable or {}, {}, policies or {}, near
    )


def ask(slot, *arqs, bitstream=None, hostname=None, **fields):
    return handle_stock.Ask(
        hostname or slot.hostname,
        slot.rp_uuid,
        device_profile.Group(
            {slot.resource_class: len(arqs)},
            properties=(
                {} if bitstream is None else {'bitstream_id': bitstream}
            ),
            **fields,
        ),
        dict.fromkeys(arqs, slot.resource_class),
    )


STOCKS = st.lists(
    st.tuples(st.sampled_from(SLOTS), st.integers(0, 3)), max_size=6
)


@st.composite
def wishes(draw):
    """Some instances, each with some groups."""
    numbers = itertools.count()
    return [
        [
            ask(slot, *(f'arq-{next(numbers)}' for _unit in range(amount)))
            for slot, amount in groups
        ]
        for groups in draw(
            st.lists(
                st.lists(
                    st.tuples(st.sampled_from(SLOTS), st.integers(1, 3)),
                    max_size=3,
                ),
                max_size=4,
            )
        )
    ]


class TestAllot(testtools.TestCase):
    @hypothesis.given(STOCKS, wishes())
    def test_all_or_nothing_and_nothing_twice(self, amounts, wished):
        kinds = [
            (slot, kind(slot, amount, number))
            for number, (slot, amount) in enumerate(amounts)
        ]
        left = {
            slot: {
                handle
                for other, each in kinds
                if other == slot
                for handle in each.handles
            }
            for slot in SLOTS
        }
        found = stock(*kinds)
        for asks in wished:
            wanted = collections.Counter(
                slot for each in asks for slot in each.slots
            )
            if any(
                len(left[slot]) < amount for slot, amount in wanted.items()
            ):
                self.assertRaises(
                    exceptions.AcceleratorsBusy, found.allot, asks
                )
                continue
            allotted = found.allot(asks)
            slots = {
                arq: slot
                for each in asks
                for arq, slot in zip(each.arqs, each.slots, strict=True)
            }
            self.assertEqual(sorted(slots), sorted(allotted.arqs.values()))
            self.assertEqual(slots.keys(), allotted.why.keys())
            for handle, arq in allotted.arqs.items():
                self.assertIn(handle, left[slots[arq]])
                left[slots[arq]].remove(handle)

    def test_what_holds_the_bitstream(self):
        found = stock(
            *(
                (SLOTS[0], kind(SLOTS[0], 1, held, bitstream_id=held))
                for held in ('bits-a', 'bits-b', None)
            )
        )
        allotted = found.allot(
            [
                ask(SLOTS[0], 'arq-a', bitstream='bits-a'),
                ask(SLOTS[0], 'arq-b', bitstream='bits-c'),
            ]
        )
        self.assertEqual(
            {'rp-0 FPGA bits-a 0': 'arq-a', 'rp-0 FPGA None 0': 'arq-b'},
            allotted.arqs,
        )
        self.assertEqual(
            {
                'arq-a': 'the region held the bitstream; others fitted: 2',
                'arq-b': 'an empty region was chosen; others fitted: 1',
            },
            allotted.why,
        )

    def test_by_the_policy_of_the_class(self):
        for policies, expected in (({}, 1), ({'FPGA': 'spread'}, 3)):
            found = stock(
                *(
                    (
                        SLOTS[0],
                        kind(SLOTS[0], free, free, sets=(f'numa{free}',)),
                    )
                    for free in (1, 3, 2)
                ),
                policies=policies,
            )
            [handle] = found.allot([ask(SLOTS[0], 'arq')]).arqs
            self.assertEqual(f'rp-0 FPGA {expected}', handle[:-2])

    def test_placement_has_compared_the_traits(self):
        """An operator's trait of a provider is only there."""
        [arq] = (
            stock((SLOTS[0], kind(SLOTS[0], 1)))
            .allot([ask(SLOTS[0], 'arq', required=frozenset({'CUSTOM_GOLD'}))])
            .arqs.values()
        )
        self.assertEqual('arq', arq)

    def test_on_one_numa_node(self):
        slot = SLOTS[0]
        kinds = [
            (slot, kind(slot, free, number, sets=(f'numa{number}',)))
            for number, free in enumerate((1, 2))
        ]
        allotted = stock(*kinds).allot(
            [ask(slot, 'a', 'b', is_on_one_numa_node=True)]
        )
        self.assertEqual(
            set(kinds[1][1].handles) | allotted.arqs.keys(),
            allotted.arqs.keys(),
        )
        error = self.assertRaises(
            exceptions.AcceleratorsBusy,
            stock(
                *(
                    (slot, kind(slot, 1, number, sets=(f'numa{number}',)))
                    for number in range(2)
                )
            ).allot,
            [ask(slot, 'a', 'b', is_on_one_numa_node=True)],
        )
        self.assertIn('on one NUMA node', str(error))
        self.assertIn(slot.rp_uuid, str(error))

    def test_says_what_is_short(self):
        error = self.assertRaises(
            exceptions.AcceleratorsBusy,
            stock((SLOTS[0], kind(SLOTS[0], 1))).allot,
            [ask(SLOTS[0], 'a'), ask(SLOTS[0], 'b')],
        )
        self.assertEqual(
            '2 FPGA of resource provider rp-0 on host compute-1 wanted, '
            '1 free',
            str(error),
        )

    def test_says_why_no_more_are_free(self):
        found = stock(
            (SLOTS[0], None),
            unusable={
                SLOTS[0]: ['being cleaned', 'faulty: hot', 'being cleaned'],
                SLOTS[1]: ['disabled by an administrator'],
            },
        )
        error = self.assertRaises(
            exceptions.AcceleratorsBusy, found.allot, [ask(SLOTS[0], 'a')]
        )
        self.assertEqual(
            '1 FPGA of resource provider rp-0 on host compute-1 wanted, '
            '0 free (2 being cleaned, 1 faulty: hot)',
            str(error),
        )


class TestPrice(testtools.TestCase):
    def test_what_fits_is_cheaper(self):
        found = stock(
            (SLOTS[0], kind(SLOTS[0], 1, bitstream_id='bits-a')),
            (SLOTS[2], kind(SLOTS[2], 1)),
            (SLOTS[1], None),
        )
        group = ask(SLOTS[0], 'arq', bitstream='bits-a').group
        prices = [
            found.price('compute-1', rp_uuid, group)
            for rp_uuid in ('rp-0', 'rp-1', 'rp-9')
        ]
        self.assertEqual(sorted(set(prices)), prices)


class TestHosts(testtools.TestCase):
    def test_providers(self):
        found = stock((SLOTS[0], None))
        slot = SLOTS[0]
        found.check_providers([slot, slot._replace(resource_class='VGPU')])
        error = self.assertRaises(
            exceptions.NotFound,
            found.check_providers,
            [
                slot,
                slot._replace(hostname='compute-2'),
                slot._replace(rp_uuid='rp-1'),
            ],
        )
        self.assertEqual(
            'Resource provider rp-1 not found on host compute-1; '
            'Resource provider rp-0 not found on host compute-2',
            str(error),
        )

    def test_silent_hosts(self):
        minute = datetime.timedelta(minutes=1)
        found = handle_stock.HandleStock(
            {}, {}, {'compute-1': minute, 'compute-2': 2 * minute}, {}
        )
        self.assertEqual({'compute-2'}, found.silent_hosts(60))


class TestNearCells(testtools.TestCase):
    """A guest whose cells are on node 1."""

    def stock(self):
        return stock(
            *(
                (SLOTS[0], kind(SLOTS[0], 1, number, node=node))
                for number, node in enumerate(('numa0', 'numa1', None))
            ),
            near=frozenset({'numa1'}),
        )

    def test_required(self):
        affinity = device_profile.NumaAffinity.REQUIRED
        found = self.stock().allot(
            [ask(SLOTS[0], 'a', numa_affinity=affinity)]
        )
        self.assertEqual({'rp-0 FPGA 1 0': 'a'}, found.arqs)

    def test_too_few_are_near(self):
        affinity = device_profile.NumaAffinity.REQUIRED
        wanted = ask(SLOTS[0], 'a', 'b', numa_affinity=affinity)
        fault = self.assertRaises(
            exceptions.AcceleratorsBusy, self.stock().allot, [wanted]
        )
        for part in (
            '2 of resource provider rp-0 on host compute-1 wanted '
            "on NUMA node 1, where the guest's cells are, and 1 free "
            'there; the others are on NUMA node 0 and an unknown NUMA node',
            '"pool": true',
            'accel:numa_affinity=preferred',
        ):
            self.assertIn(part, str(fault))
        self.assertNotIn('compute-1', fault.public)
        self.assertIn('NUMA nodes of the server', fault.public)

    def test_preferred(self):
        affinity = device_profile.NumaAffinity.PREFERRED
        found = self.stock().allot(
            [ask(SLOTS[0], 'a', 'b', numa_affinity=affinity)]
        )
        self.assertIn('rp-0 FPGA 1 0', found.arqs)
        self.assertIn("NUMA nodes of the guest's cells", found.why['a'])

    def test_the_provider_of_a_group(self):
        """The one with near units has the lower price."""
        far = SLOTS[2]
        found = stock(
            (SLOTS[0], kind(SLOTS[0], 1, node='numa1')),
            (far, kind(far, 1, node='numa0')),
            near=frozenset({'numa1'}),
        )
        for affinity in device_profile.NumaAffinity:
            group = device_profile.Group({'FPGA': 1}, numa_affinity=affinity)
            prices = [
                found.price('compute-1', slot.rp_uuid, group)
                for slot in (SLOTS[0], far)
            ]
            self.assertLess(*prices)


class TestSharedCards(testtools.TestCase):
    """Cards that are whole, or two halves, or four quarters."""

    SHAPES = (('whole', 8), ('half', 4), ('quarter', 2))

    def slot(self, shape, rp_uuid='rp-0'):
        return handle_stock.Slot('compute-1', rp_uuid, f'CUSTOM_{shape}')

    def stock(self, taken=(), unusable=None):
        """The stock of a card; taken are the names of some units."""
        offered = {
            f'CUSTOM_{shape}': {
                f'{shape} {start}': slices.eighths(shape, start, size)
                for start in range(0, 8, size)
            }
            for shape, size in self.SHAPES
        }
        everything = {
            name: each
            for of_class in offered.values()
            for name, each in of_class.items()
        }
        kinds = {
            self.slot(shape): [kind(self.slot(shape), 0)]
            for shape, _size in self.SHAPES
        }
        for [of_kind] in kinds.values():
            of_kind.units = dataclasses.replace(
                of_kind.units,
                free=sum(
                    not any(each.excludes(everything[name]) for name in taken)
                    for each in offered[of_kind.units.resource_class].values()
                ),
            )
        return handle_stock.HandleStock(
            kinds,
            unusable or {},
            {},
            {},
            cards={
                'rp-0': handle_stock.ReadCard(
                    'card',
                    shared_card.SharedCard(
                        {
                            name: list(of_class.values())
                            for name, of_class in offered.items()
                        },
                        [everything[name] for name in taken],
                    ),
                    {each: name for name, each in everything.items()},
                )
            },
        )

    def allot(self, found, *shapes):
        return found.allot(
            [
                ask(self.slot(shape), f'arq-{number}')
                for number, shape in enumerate(shapes)
            ]
        )

    def test_the_units_of_a_server_fit_together(self):
        allotted = self.allot(self.stock(), 'quarter', 'half', 'quarter')
        quarters = {name for name in allotted.arqs if 'quarter' in name}
        [half] = allotted.arqs.keys() - quarters
        self.assertIn(
            (half, quarters),
            [
                ('half 4', {'quarter 0', 'quarter 2'}),
                ('half 0', {'quarter 4', 'quarter 6'}),
            ],
        )
        self.assertEqual(dict.fromkeys(allotted.arqs, 'card'), allotted.cards)
        self.assertEqual(
            {'arq-0', 'arq-1', 'arq-2'}, {*allotted.arqs.values()}
        )

    def test_beside_what_is_taken(self):
        self.assertEqual(
            {'half 4': 'arq-0'},
            self.allot(self.stock(['quarter 2']), 'half').arqs,
        )

    def test_one_server_after_the_other(self):
        found = self.stock()
        for shape in ('half', 'quarter', 'quarter'):
            self.allot(found, shape)
        self.assertRaises(
            exceptions.AcceleratorsBusy, self.allot, found, 'quarter'
        )

    def test_no_room_beside_the_others(self):
        error = self.assertRaises(
            exceptions.AcceleratorsBusy,
            self.allot,
            self.stock(),
            'quarter',
            'whole',
        )
        self.assertEqual(
            'the card of resource provider rp-0 has no room for CUSTOM_whole '
            'beside the other units that the server is to get',
            str(error),
        )

    def test_none_of_them_is_free(self):
        slot = self.slot('whole')
        error = self.assertRaises(
            exceptions.AcceleratorsBusy,
            self.allot,
            self.stock(['half 4'], {slot: ['excluded']}),
            'whole',
        )
        self.assertIn('0 free (1 excluded)', str(error))

    def test_units_that_share_no_card(self):
        allotted = stock((SLOTS[0], kind(SLOTS[0], 1))).allot(
            [ask(SLOTS[0], 'arq')]
        )
        self.assertEqual({}, allotted.cards)
