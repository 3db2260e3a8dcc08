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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.providers import provider_layout
from nova_accel.model.units import local_choice

GPU = {'resources:PGPU': '1'}
GOLD = {**GPU, 'trait:CUSTOM_GOLD': 'required'}
NO_GOLD = {**GPU, 'trait:CUSTOM_GOLD': 'forbidden'}


def handle(uuid):
    return attach_handle.AttachHandle(
        uuid, pci_address.PciAddress(0, 0x81, 0, 0)
    )


def an_arq(uuid, provider, group):
    return arq_types.Arq(
        uuid, arq_types.State.BOUND, 'gpu', 0, group, provider, handle(uuid)
    )


def layout(**pools):
    """Provider -> its number of units, and its traits."""
    return provider_layout.Layout(
        tuple(
            provider_layout.Provider(
                name,
                name,
                None,
                frozenset(traits),
                {
                    resource_class: tuple(
                        handle(f'{name}{number}') for number in range(amount)
                    )
                },
            )
            for name, (resource_class, amount, *traits) in pools.items()
        )
    )


class TestInPlaceOf(testtools.TestCase):
    def choose(self, pools, *failed, unavailable=()):
        wanted = local_choice.Choice(
            pools, frozenset(unavailable)
        ).in_place_of(failed)
        for arq, instead in zip(failed, wanted, strict=True):
            self.assertEqual(
                (
                    arq.device_profile_name,
                    arq.device_profile_group_id,
                    arq.group,
                ),
                (
                    instead.device_profile_name,
                    instead.device_profile_group_id,
                    instead.group,
                ),
            )
        return {
            arq.uuid: instead.device_rp_uuid
            for arq, instead in zip(failed, wanted, strict=True)
        }

    def test_its_own_pool_comes_first(self):
        pools = layout(a=('PGPU', 9), b=('PGPU', 1))
        failed = [an_arq('1', 'b', GPU), an_arq('2', 'b', GPU)]
        self.assertEqual({'1': 'b', '2': 'a'}, self.choose(pools, *failed))

    def test_another_provider_of_its_kind(self):
        pools = layout(
            a=('FPGA', 9), b=('PGPU', 9), c=('PGPU', 1, 'CUSTOM_GOLD')
        )
        for group, expected in ((GOLD, 'c'), (NO_GOLD, 'b'), (GPU, 'b')):
            self.assertEqual(
                {'1': expected}, self.choose(pools, an_arq('1', 'x', group))
            )

    def test_none_that_others_have(self):
        pools = layout(a=('PGPU', 2))
        error = self.assertRaises(
            exceptions.Conflict,
            self.choose,
            pools,
            an_arq('1', 'a', GPU),
            unavailable=['a0', 'a1'],
        )
        self.assertEqual(
            'ARQ 1 with 0000:81:00.0 gets no other unit: no pool of its host '
            'has 1 free units for its group; migrate the server to another '
            'host',
            str(error),
        )
        self.assertNotIn('0000:', error.public)

    def test_units_that_are_joined_to_others(self):
        for key, value in (
            ('accel:link', 'nvlink'),
            ('accel:single_numa_node', 'true'),
            ('accel:numa_affinity', 'required'),
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                self.choose,
                layout(a=('PGPU', 2)),
                an_arq('1', 'a', {**GPU, key: value}),
            )
            self.assertIn(key, error.public)

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=4),
        st.lists(st.sampled_from([GPU, GOLD, NO_GOLD]), max_size=4),
    )
    def test_each_fits_and_none_is_given_twice(self, pools, groups):
        made = layout(
            **{
                f'p{number}': ('PGPU', amount, *(['CUSTOM_GOLD'] * is_gold))
                for number, (amount, is_gold) in enumerate(pools)
            }
        )
        failed = [
            an_arq(f'{number}', 'p0', group)
            for number, group in enumerate(groups)
        ]
        try:
            chosen = self.choose(made, *failed)
        except exceptions.Conflict:
            return
        used = collections.Counter(chosen.values())
        for number, (amount, _is_gold) in enumerate(pools):
            self.assertLessEqual(used[f'p{number}'], amount)
        for arq, group in zip(failed, groups, strict=True):
            is_gold = pools[int(chosen[arq.uuid][1:])][1]
            self.assertFalse(group is GOLD and not is_gold)
            self.assertFalse(group is NO_GOLD and is_gold)

    def test_the_first_does_not_take_what_only_the_next_can_have(self):
        pools = layout(a=('PGPU', 1, 'CUSTOM_GOLD'), b=('PGPU', 1))
        for failed in itertools.permutations(
            [an_arq('1', 'x', GPU), an_arq('2', 'x', GOLD)]
        ):
            self.assertEqual({'1': 'b', '2': 'a'}, self.choose(pools, *failed))


class TestForGroups(testtools.TestCase):
    def choose(self, pools, *groups):
        wanted = local_choice.Choice(pools, frozenset()).for_groups(
            'gpu', dict(enumerate(groups))
        )
        self.assertEqual({'gpu'}, {arq.device_profile_name for arq in wanted})
        return sorted(
            (arq.device_profile_group_id, arq.device_rp_uuid) for arq in wanted
        )

    def test_a_group_is_of_one_provider(self):
        pools = layout(a=('PGPU', 1), b=('PGPU', 2))
        self.assertEqual(
            [(0, 'b'), (0, 'b'), (1, 'a')],
            self.choose(pools, {'resources:PGPU': '2'}, GPU),
        )

    def test_what_fewest_units_fit_comes_first(self):
        pools = layout(a=('PGPU', 1, 'CUSTOM_GOLD'), b=('PGPU', 1))
        self.assertEqual([(0, 'b'), (1, 'a')], self.choose(pools, GPU, GOLD))

    def test_too_few(self):
        for group in (
            {'resources:PGPU': '3'},
            {**GPU, 'resources:FPGA': '1'},
            {**GPU, 'accel:single_numa_node': 'true'},
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                self.choose,
                layout(a=('PGPU', 2), b=('PGPU', 2)),
                GPU,
                group,
            )
            self.assertIn('group 1 of device profile gpu', error.public)


class TestStays(testtools.TestCase):
    def stays(self, held, *groups):
        """:param held: for each ARQ the number of its group, and the group"""
        return local_choice.stays(
            [
                dataclasses.replace(
                    an_arq(f'{index}', 'p', group),
                    device_profile_group_id=number,
                )
                for index, (number, group) in enumerate(held)
            ],
            groups,
        )

    def test_the_same_group_at_another_place(self):
        self.assertEqual(
            {'1': 0, '0': 2},
            self.stays([(0, GPU), (1, GOLD)], GOLD, NO_GOLD, GPU),
        )

    def test_of_two_alike_each_keeps_its_place(self):
        self.assertEqual(
            {'0': 0, '1': 1}, self.stays([(0, GPU), (1, GPU)], GPU, GPU)
        )
        self.assertEqual({'0': 0}, self.stays([(0, GPU), (1, GPU)], GPU))

    def test_a_group_stays_as_a_whole(self):
        two = {'resources:PGPU': '2'}
        self.assertEqual(
            {'0': 1, '1': 1}, self.stays([(0, two), (0, two)], GOLD, two)
        )
        # One of them was lost.
        self.assertEqual({}, self.stays([(0, two)], two))

    def test_nothing(self):
        self.assertEqual({}, self.stays([], GPU))
        self.assertEqual({}, self.stays([(0, GPU)]))


class TestResources(testtools.TestCase):
    SHARES = {
        provider_layout.Place(card, f'CUSTOM_SHAPE_{shape}'): share
        for card in ('a', 'b')
        for shape, share in (('HALF', 6), ('QUARTER', 3))
    }

    def resources(self, *wanted):
        return local_choice.resources(
            [
                arq_types.WantedArq(
                    'profile',
                    0,
                    {f'resources:{resource_class}': '1'},
                    rp_uuid,
                )
                for rp_uuid, resource_class in wanted
            ],
            self.SHARES,
        )

    def test_units_of_each_provider(self):
        self.assertEqual({}, self.resources())
        self.assertEqual(
            {'x': {'PGPU': 2, 'FPGA': 1}, 'y': {'PGPU': 1}},
            self.resources(
                ('x', 'PGPU'), ('x', 'FPGA'), ('y', 'PGPU'), ('x', 'PGPU')
            ),
        )

    def test_shares_of_cards(self):
        half, quarter = 'CUSTOM_SHAPE_HALF', 'CUSTOM_SHAPE_QUARTER'
        self.assertEqual(
            {
                'a': {half: 1, quarter: 2, 'CUSTOM_CARD_SHARE': 12},
                'b': {quarter: 1, 'CUSTOM_CARD_SHARE': 3},
                'x': {'PGPU': 1},
            },
            self.resources(
                ('a', quarter),
                ('a', half),
                ('b', quarter),
                ('x', 'PGPU'),
                ('a', quarter),
            ),
        )
