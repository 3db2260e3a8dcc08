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
from nova_accel.model import naming
from nova_accel.model.links import link_division
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import group_division


def a_group(link='nvlink', **resources):
    return device_profile.Group(resources, link=link)


def pools_of(size):
    return lambda group, joined: size


class TestDivided(testtools.TestCase):
    def test_groups_alone_and_in_sets(self):
        alone = a_group(None, CUSTOM_NIC=4)
        divided = link_division.divided(
            [a_group(PGPU=4), alone, a_group('numa', FPGA=1)], pools_of(2)
        )
        self.assertEqual([1], [*divided.alone])
        self.assertEqual(
            ['CUSTOM_NOVA_ACCEL_NVLINK_4', 'CUSTOM_NOVA_ACCEL_NUMA_1'],
            [each.trait for each in divided.sets],
        )
        self.assertEqual(
            [
                {'CUSTOM_NIC': 2},
                {'CUSTOM_NIC': 2},
                {'PGPU': 2},
                {'PGPU': 2},
                {'FPGA': 1},
            ],
            [part.resources for part in divided.parts],
        )

    def test_a_group_that_is_too_large(self):
        self.assertRaises(
            exceptions.NotFound,
            link_division.divided,
            [a_group(None, CUSTOM_NIC=64)],
            pools_of(4),
        )


class TestJoined(testtools.TestCase):
    def parts(self, largest, *groups):
        joined = link_division.joined(
            dict(enumerate(groups)), pools_of(largest)
        )
        return joined, [
            [sum(part.resources.values()) for part in joined.parts[index]]
            for index in range(len(groups))
        ]

    def test_one_pool_has_enough(self):
        joined, parts = self.parts(4, a_group(PGPU=4))
        self.assertEqual('CUSTOM_NOVA_ACCEL_NVLINK_4', joined.trait)
        self.assertEqual([[4]], parts)
        self.assertTrue(joined.is_one)

    def test_the_parts_have_the_size_of_a_pool(self):
        joined, parts = self.parts(2, a_group(PGPU=8))
        self.assertEqual('CUSTOM_NOVA_ACCEL_NVLINK_8', joined.trait)
        self.assertEqual([[2, 2, 2, 2]], parts)
        self.assertFalse(joined.is_one)

    def test_gpu_and_network_card(self):
        joined, parts = self.parts(
            1, a_group('pcie', PGPU=1), a_group('pcie', CUSTOM_NIC=1)
        )
        self.assertEqual('CUSTOM_NOVA_ACCEL_PCIE_2', joined.trait)
        self.assertEqual([[1], [1]], parts)
        self.assertFalse(joined.is_one)

    def test_no_pool_is_known(self):
        _joined, parts = self.parts(0, a_group(PGPU=8))
        self.assertEqual([[8]], parts)

    def test_the_largest_pool_is_one_that_joins_all(self):
        asked = []

        def largest(group, joined):
            asked.append((group.resources, joined))
            return 1

        link_division.joined(
            {0: a_group('numa', PGPU=2), 3: a_group('numa', CUSTOM_NIC=1)},
            largest,
        )
        self.assertEqual([({'PGPU': 2}, 3), ({'CUSTOM_NIC': 1}, 3)], asked)

    def test_too_many_parts(self):
        error = self.assertRaises(
            exceptions.NotFound, self.parts, 1, a_group(PGPU=8)
        )
        self.assertIn('PGPU=8 joined by NVLink', str(error))

    @given(st.integers(2, 64), st.integers(1, 64))
    def test_the_api_finds_the_same_parts(self, amount, largest):
        """From the allocations alone, see group_division."""
        group = a_group(PGPU=amount)
        try:
            joined = link_division.joined({0: group}, pools_of(largest))
        except exceptions.NotFound:
            return
        parts = joined.parts[0]
        self.assertEqual(
            parts,
            group_division.parts(
                group, max(part.resources['PGPU'] for part in parts)
            ),
        )


class TestByLink(testtools.TestCase):
    def test_groups_of_one_link(self):
        groups = [
            a_group('pcie', PGPU=1),
            a_group(None, PGPU=1),
            a_group('numa', PGPU=2),
            a_group('pcie', CUSTOM_NIC=1),
        ]
        self.assertEqual(
            {'pcie': {0: groups[0], 3: groups[3]}, 'numa': {2: groups[2]}},
            link_division.by_link(groups),
        )


class TestTold(testtools.TestCase):
    def test_parts_are_added_up(self):
        self.assertEqual(
            'CUSTOM_NIC=1 and PGPU=4 joined by one PCIe switch',
            link_division.describe(
                'pcie',
                [
                    a_group('pcie', PGPU=2),
                    a_group('pcie', CUSTOM_NIC=1),
                    a_group('pcie', PGPU=2),
                ],
            ),
        )


class TestOffFabric(testtools.TestCase):
    def forbidding(self, *groups):
        """The groups that may be in no fabric, by their numbers."""
        return [
            index
            for index, group in enumerate(link_division.off_fabric(groups))
            if naming.FABRIC_TRAIT in group.forbidden
        ]

    def test_one_gpu(self):
        self.assertEqual([], self.forbidding(a_group(None, PGPU=1)))
        self.assertEqual(
            [],
            self.forbidding(
                a_group(None, PGPU=1), a_group(None, CUSTOM_NIC=4)
            ),
        )

    def test_several_gpus(self):
        self.assertEqual([0], self.forbidding(a_group(None, PGPU=2)))
        self.assertEqual([0], self.forbidding(a_group('pcie', PGPU=2)))
        self.assertEqual([0], self.forbidding(a_group(None, CUSTOM_MY_GPU=2)))
        self.assertEqual(
            [0, 1],
            self.forbidding(a_group(None, PGPU=1), a_group(None, VGPU=1)),
        )

    def test_a_set_of_the_fabric(self):
        self.assertEqual([], self.forbidding(a_group(PGPU=8)))

    def test_beside_a_set_of_the_fabric(self):
        self.assertEqual(
            [1],
            self.forbidding(
                a_group(PGPU=2),
                a_group(None, PGPU=1),
                a_group(None, CUSTOM_NIC=1),
            ),
        )

    def test_what_is_forbidden_stays_so(self):
        group = device_profile.Group(
            {'PGPU': 2}, forbidden=frozenset({'CUSTOM_A'})
        )
        [found] = link_division.off_fabric([group])
        self.assertEqual({'CUSTOM_A', naming.FABRIC_TRAIT}, found.forbidden)
