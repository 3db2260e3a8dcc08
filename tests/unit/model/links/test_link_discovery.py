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

import itertools

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel.model import link_sets
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_path
from nova_accel.model.links import link_discovery

Kind = link_sets.Kind
Partition = link_discovery.KnownPartition


def path(root, *bridges):
    return pci_path.PciPath(
        root, tuple(map(pci_address.PciAddress.parse, bridges))
    )


def found(sets):
    return {(each.kind, each.name): set(each.members) for each in sets}


class TestByPath(testtools.TestCase):
    def test_switches_within_each_other(self):
        upper = '0000:00:01.0', '0000:01:00.0', '0000:02:00.0'
        lower = *upper, '0000:03:00.0', '0000:04:00.0'
        self.assertEqual(
            {
                (Kind.PCIE, 'pcie_0000_01_00_0'): {'a', 'b', 'c'},
                (Kind.PCIE, 'pcie_0000_03_00_0'): {'a', 'b'},
                (Kind.ROOT, 'root_0000_00'): {'a', 'b', 'c', 'd'},
            },
            found(
                link_discovery.by_path(
                    {
                        'a': path('pci0000:00', *lower),
                        'b': path('pci0000:00', *lower),
                        'c': path('pci0000:00', *upper),
                        'd': path('pci0000:00'),
                        'alone': path('pci0000:80'),
                    }
                )
            ),
        )


class TestByNumaNode(testtools.TestCase):
    def test_an_unknown_node_is_none(self):
        self.assertEqual(
            {(Kind.NUMA, 'numa_1'): {'a', 'b'}},
            found(
                link_discovery.by_numa_node(
                    {'a': 1, 'b': 1, 'c': 0, 'd': None, 'e': None}
                )
            ),
        )


def pairs(*texts):
    return [frozenset(text) for text in texts]


class TestMeshes(testtools.TestCase):
    def test_bridges(self):
        self.assertEqual(
            [{'a', 'b'}, {'c', 'd'}],
            [
                set(each.members)
                for each in link_discovery.meshes(pairs('ab', 'cd'))
            ],
        )

    def test_all_with_all(self):
        [mesh] = link_discovery.meshes(
            map(frozenset, itertools.combinations('abcd', 2))
        )
        self.assertEqual(set('abcd'), mesh.members)
        self.assertFalse(mesh.is_exact)

    def test_a_ring_gives_no_two_that_a_third_one_joins(self):
        meshes = list(link_discovery.meshes(pairs('ab', 'bc', 'cd', 'da')))
        self.assertEqual([2, 2], [len(each.members) for each in meshes])

    @hypothesis.given(
        strategies.sets(
            strategies.frozensets(
                strategies.sampled_from('abcdefgh'), min_size=1, max_size=2
            )
        )
    )
    def test_each_device_is_in_one_of_pairs(self, some):
        meshes = list(link_discovery.meshes(some))
        members = [each for mesh in meshes for each in mesh.members]
        self.assertEqual(len(set(members)), len(members))
        for mesh in meshes:
            for pair in itertools.combinations(mesh.members, 2):
                self.assertIn(frozenset(pair), some)


class TestOfPartitions(testtools.TestCase):
    def sets(self, *partitions, modules=None, single='abcd'):
        return {
            ''.join(sorted(each.members)): each.is_able
            for each in link_discovery.of_partitions(
                partitions,
                modules or dict(zip((1, 2, 3, 4), 'abcd', strict=True)),
                set(single),
            )
            if each.is_exact and each.kind is Kind.NVLINK
        }

    def test_the_able_ones(self):
        self.assertEqual(
            {'ac': True, 'bd': False},
            self.sets(
                Partition(frozenset({1, 3})),
                Partition(frozenset({2, 4}), is_supported=False),
            ),
        )

    def test_a_device_that_is_not_there(self):
        self.assertEqual(
            {'a': False, 'ab': True},
            self.sets(
                Partition(frozenset({1, 2})),
                Partition(frozenset({1, 3})),
                Partition(frozenset({7})),
                modules={1: 'a', 2: 'b'},
            ),
        )

    def test_a_card_in_units(self):
        self.assertEqual(
            {'ab': False}, self.sets(Partition(frozenset({1, 2})), single='a')
        )

    def test_names_are_short(self):
        [each] = link_discovery.of_partitions(
            [Partition(frozenset(range(64)))],
            {0: 'a', 1: 'b'},
            set('ab'),
        )
        self.assertLessEqual(len(each.name), link_sets.MAX_NAME)


class TestOverridden(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.switch = link_sets.LinkSet(Kind.PCIE, frozenset('abcd'))
        self.pair = link_sets.LinkSet(
            Kind.NVLINK, frozenset('ab'), is_exact=True
        )
        self.single = link_sets.LinkSet(
            Kind.NVLINK, frozenset('a'), is_exact=True
        )

    def overridden(self, given, devices, *sets):
        return [
            (each.kind, ''.join(sorted(each.members)))
            for each in link_discovery.overridden(
                sets,
                {
                    kind: [frozenset(each) for each in some]
                    for kind, some in given.items()
                },
                set(devices),
            )
        ]

    def test_a_kind_is_replaced_among_the_devices(self):
        self.assertEqual(
            [(Kind.PCIE, 'cd'), (Kind.PCIE, 'ab')],
            self.overridden({Kind.PCIE: ['ab']}, 'ab', self.switch),
        )

    def test_other_kinds_stay(self):
        self.assertEqual(
            [(Kind.PCIE, 'abcd'), (Kind.NUMA, 'ab')],
            self.overridden({Kind.NUMA: ['ab']}, 'abcd', self.switch),
        )

    def test_partitions_can_only_be_chosen(self):
        self.assertEqual(
            [(Kind.NVLINK, 'ab'), (Kind.NVLINK, 'a')],
            self.overridden(
                {Kind.NVLINK: ['ab', 'bc']}, 'abcd', self.pair, self.single
            ),
        )
        self.assertEqual(
            [(Kind.NVLINK, 'a')],
            self.overridden({Kind.NVLINK: []}, 'ab', self.pair, self.single),
        )
        self.assertEqual(
            [(Kind.NVLINK, 'ab')],
            self.overridden({Kind.NVLINK: []}, 'cd', self.pair),
        )
