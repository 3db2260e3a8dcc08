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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import pool_sizes
from nova_accel.model.units import unit_changes
from unit.model.cards import slices

GPU = frozenset({'CUSTOM_GPU_A'})


def units(total, numa_node=None, *, traits=GPU, free=0):
    return unit_changes.ChangedDeployable(
        hostname='c1',
        uuid='d',
        rp_uuid='rp',
        resource_class='PGPU',
        traits=traits,
        device_uuid='d',
        numa_node=numa_node,
        region=None,
        bitstream_id=None,
        total=total,
        free=free,
    )


def a_group(*required, forbidden=(), single_numa_node=False, **resources):
    return device_profile.Group(
        resources or {'PGPU': 1},
        frozenset(required),
        frozenset(forbidden),
        is_on_one_numa_node=single_numa_node,
    )


def eighths(number):
    return slices.eighths('mig:3g.40gb', 0, number)


class TestPoolSizes(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.sizes = pool_sizes.PoolSizes()

    def test_nothing_is_known(self):
        self.assertEqual(0, self.sizes.largest(a_group()))

    def test_all_deployables_of_a_provider_count(self):
        self.sizes.put('a', [units(2), units(1)])
        self.sizes.put('b', [units(2)])
        self.assertEqual(3, self.sizes.largest(a_group()))

    def test_what_is_not_free_counts(self):
        self.sizes.put('a', [units(2, free=1)])
        self.assertEqual(2, self.sizes.largest(a_group()))

    def test_on_one_numa_node(self):
        group = a_group(single_numa_node=True)
        self.sizes.put(
            'a',
            [units(2, 0), units(2, 0), units(3, 1), units(1), units(1)],
        )
        self.assertEqual(4, self.sizes.largest(group))
        self.assertEqual(9, self.sizes.largest(a_group()))

    def test_on_a_machine_without_numa(self):
        self.sizes.put('a', [units(2), units(2)])
        self.assertEqual(4, self.sizes.largest(a_group(single_numa_node=True)))

    def test_what_does_not_suit(self):
        self.sizes.put('a', [units(8)])
        self.sizes.put('b', [units(4, traits=GPU | {'CUSTOM_RACK_7'})])
        for expected, group in (
            (8, a_group('CUSTOM_GPU_A')),
            (4, a_group('CUSTOM_GPU_A', 'CUSTOM_RACK_7')),
            (8, a_group(forbidden=['CUSTOM_RACK_7'])),
            (0, a_group('CUSTOM_ONLY_IN_PLACEMENT')),
            (0, a_group(VGPU=1)),
            (0, a_group(PGPU=1, VGPU=1)),
        ):
            self.assertEqual(expected, self.sizes.largest(group), group)

    def test_joined_devices(self):
        """Only pools in sets that can join as many count."""
        for rp_uuid, amount, *sets in (
            ('a', 2, 'half nvlink=4', 'pair nvlink=2'),
            ('b', 3, 'mesh nvlink=2-3'),
            ('c', 8, 'node numa=2-8'),
        ):
            self.sizes.put(
                rp_uuid,
                [units(1)._replace(link_sets=tuple(sets))] * amount,
            )
        for link, joined, expected in (
            ('nvlink', 2, 3),
            ('nvlink', 3, 3),
            ('nvlink', 4, 2),
            ('nvlink', 8, 0),
            ('numa', 8, 8),
            ('pcie', 2, 0),
        ):
            group = dataclasses.replace(a_group(), link=link)
            self.assertEqual(
                expected, self.sizes.largest(group, joined), (link, joined)
            )
        self.assertEqual(8, self.sizes.largest(a_group()))

    def test_shares_of_cards(self):
        """The largest one of all products that suit."""
        self.assertEqual(0, self.sizes.share(a_group()))
        for rp_uuid, share, traits in (
            ('a', 4, GPU),
            ('b', 3, GPU | {'CUSTOM_RACK_7'}),
            ('c', 6, frozenset({'CUSTOM_GPU_B'})),
        ):
            self.sizes.put(
                rp_uuid,
                [
                    units(2, traits=traits)._replace(slices=(eighths(share),)),
                    units(1, traits=traits)._replace(
                        slices=(eighths(8),), resource_class='VGPU'
                    ),
                ],
            )
        for expected, group in (
            (6, a_group()),
            (4, a_group('CUSTOM_GPU_A')),
            (3, a_group('CUSTOM_GPU_A', 'CUSTOM_RACK_7')),
            (4, a_group(forbidden=['CUSTOM_GPU_B'])),
            (8, a_group(VGPU=1)),
            (0, a_group('CUSTOM_ONLY_IN_PLACEMENT')),
            (0, a_group(FPGA=1)),
        ):
            self.assertEqual(
                expected and eighths(expected).size,
                self.sizes.share(group),
                group,
            )
        self.sizes.put('c', [])
        self.assertEqual(eighths(4).size, self.sizes.share(a_group()))

    def test_units_that_share_no_card(self):
        self.sizes.put('a', [units(2)])
        self.assertEqual(0, self.sizes.share(a_group()))

    def test_a_provider_is_gone(self):
        for rp_uuid in 'ab':
            self.sizes.put(rp_uuid, [units(8)])
        self.sizes.put('c', [units(4)])
        for rp_uuid, expected in (('a', 8), ('b', 4), ('c', 0), ('c', 0)):
            self.sizes.put(rp_uuid, [])
            self.assertEqual(expected, self.sizes.largest(a_group()))

    @given(
        st.lists(
            st.tuples(st.sampled_from('abc'), st.lists(st.integers(0, 5))),
        )
    )
    def test_each_change_counts_once(self, changes):
        sizes, now = pool_sizes.PoolSizes(), {}
        for rp_uuid, totals in changes:
            sizes.put(rp_uuid, [units(total) for total in totals])
            now[rp_uuid] = sum(totals)
            self.assertEqual(
                max(now.values(), default=0), sizes.largest(a_group())
            )
