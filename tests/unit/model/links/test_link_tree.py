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
import itertools

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel.model import link_sets
from nova_accel.model.links import link_faults
from nova_accel.model.links import link_tree

Kind = link_sets.Kind


def a_set(kind, members, **keys):
    return link_sets.LinkSet(kind, frozenset(members), **keys)


DEVICES = 'abcdefghij'


@strategies.composite
def of_devices(draw):
    """Sets, of which some have links that are down."""
    pairs = list(map(frozenset, itertools.combinations(DEVICES, 2)))
    down = draw(strategies.frozensets(strategies.sampled_from(pairs)))
    return list(
        link_faults.marked(
            draw(
                strategies.lists(
                    strategies.builds(
                        link_sets.LinkSet,
                        strategies.sampled_from(list(Kind)),
                        strategies.frozensets(
                            strategies.sampled_from(DEVICES),
                            min_size=1,
                            max_size=8,
                        ),
                        strategies.booleans(),
                        strategies.booleans(),
                        strategies.sampled_from(['', 'one', 'other']),
                    ),
                    max_size=12,
                )
            ),
            down,
        )
    )


SETS = of_devices()


@strategies.composite
def nested(draw):
    """Sets of a tree that is no deeper than the limit."""
    found = []

    def divide(members, depth):
        if len(members) < 2 or depth == link_sets.MAX_DEPTH:
            return
        found.append(
            a_set(
                draw(strategies.sampled_from([Kind.PCIE, Kind.NUMA])), members
            )
        )
        cut = draw(strategies.integers(1, len(members) - 1))
        divide(members[:cut], depth + 1)
        divide(members[cut:], depth + 1)

    divide(DEVICES, 0)
    return found


def of_tree(made):
    return {node.members: set(node.sets) for node in made.tree.nodes}


class TestMade(testtools.TestCase):
    def test_sets_within_each_other(self):
        pair, four, node = (
            a_set(Kind.NVLINK, 'ab'),
            a_set(Kind.PCIE, 'abcd'),
            a_set(Kind.NUMA, 'abcdef'),
        )
        made = link_tree.build([node, pair, four])
        self.assertEqual(
            [node.members, four.members, pair.members],
            [each.members for each in made.tree.nodes],
        )
        self.assertEqual((), made.left_out)

    def test_the_same_devices_are_one_place(self):
        switch, root = (
            a_set(Kind.PCIE, 'ab', name='s'),
            a_set(Kind.ROOT, 'ab', name='r'),
        )
        made = link_tree.build([root, switch])
        [node] = made.tree.nodes
        self.assertEqual({switch, root}, set(node.sets))
        # So nothing that is learnt later changes the name.
        self.assertEqual('r', node.name)

    def test_a_set_that_crosses_another_one(self):
        made = link_tree.build(
            [
                a_set(Kind.NUMA, 'bc', name='n0'),
                a_set(Kind.PCIE, 'ab', name='s'),
            ]
        )
        self.assertEqual([frozenset('ab')], list(of_tree(made)))
        [told] = made.left_out
        self.assertIn('numa set n0 (b, c) crosses the pcie set s (a, b)', told)

    def test_a_root_complex_is_left_out_silently(self):
        made = link_tree.build(
            [a_set(Kind.ROOT, 'bc'), a_set(Kind.PCIE, 'ab')]
        )
        self.assertEqual((), made.left_out)
        self.assertEqual(1, len(made.tree.nodes))

    def test_one_device_is_no_set(self):
        made = link_tree.build([a_set(Kind.NVLINK, 'a', is_exact=True)])
        self.assertEqual((), made.tree.nodes)
        self.assertEqual(frozenset('a'), made.tree.partitioned)

    def test_too_deep(self):
        sets = [a_set(Kind.PCIE, DEVICES[:size]) for size in range(2, 11)]
        made = link_tree.build(sets)
        self.assertEqual(link_sets.MAX_DEPTH, len(made.tree.path('a')))
        self.assertIn('a device may be in 8 sets', made.left_out[0])

    def test_long_names_and_none(self):
        made = link_tree.build(
            [a_set(Kind.PCIE, 'ab', name='x' * 99), a_set(Kind.PCIE, 'cd')]
        )
        names = {node.name for node in made.tree.nodes}
        self.assertEqual(2, len(names))
        self.assertTrue(
            all(0 < len(name) <= link_sets.MAX_NAME for name in names), names
        )


class TestNvlinkAndSwitches(testtools.TestCase):
    """GPUs are a to d, and network cards m and n."""

    FOUR = a_set(Kind.NVLINK, 'abcd', is_exact=True)
    PAIRS = (
        a_set(Kind.NVLINK, 'ab', is_exact=True),
        a_set(Kind.NVLINK, 'cd', is_exact=True),
    )
    SWITCHES = a_set(Kind.PCIE, 'abm'), a_set(Kind.PCIE, 'cdn')
    CLASSES = dict.fromkeys('abcd', 'PGPU') | dict.fromkeys('mn', 'NIC')

    def test_cards_join_the_place_of_the_larger_set(self):
        made = link_tree.build(
            [self.FOUR, *self.PAIRS, *self.SWITCHES], self.CLASSES
        )
        self.assertEqual((), made.left_out)
        self.assertEqual(
            {'abcdmn', 'abm', 'cdn', 'ab', 'cd'},
            {''.join(sorted(members)) for members in of_tree(made)},
        )
        self.assertEqual({self.FOUR}, of_tree(made)[frozenset('abcdmn')])
        # A trait says how many are joined, not how many are there.
        self.assertEqual(
            {'CUSTOM_NOVA_ACCEL_NVLINK_4'}, made.tree.nodes[0].traits
        )

    def test_no_other_gpu_joins(self):
        """Somebody who asks for the set could get it."""
        made = link_tree.build(
            [self.FOUR, *self.SWITCHES], self.CLASSES | {'m': 'PGPU'}
        )
        self.assertEqual(
            {frozenset('abcdn'), frozenset('cdn')}, set(of_tree(made))
        )
        self.assertEqual(1, len(made.left_out))

    def test_pairs_across_switches(self):
        across = a_set(Kind.NVLINK, 'ac', is_exact=True)
        made = link_tree.build([across, *self.SWITCHES], self.CLASSES)
        self.assertEqual({frozenset('ac')}, set(of_tree(made)))
        self.assertEqual(2, len(made.left_out))


class TestFailedLinks(testtools.TestCase):
    """GPUs are a to d, and network cards m and n."""

    def made(self, *down, others=()):
        mesh = a_set(Kind.NVLINK, 'abcd', down=frozenset(map(frozenset, down)))
        made = link_tree.build([mesh, *others], dict.fromkeys('mn', 'NIC'))
        self.assertEqual((), made.left_out)
        return {
            ''.join(sorted(node.members)): {
                trait.removeprefix('CUSTOM_NOVA_ACCEL_')
                for trait in node.traits
            }
            for node in made.tree.nodes
        }

    def test_the_pairs_that_need_no_such_link(self):
        self.assertEqual(
            {'abcd': set(), 'ac': {'NVLINK_2'}, 'bd': {'NVLINK_2'}},
            self.made('ab'),
        )

    def test_a_pair_of_a_switch_is_one_place(self):
        switches = a_set(Kind.PCIE, 'abm'), a_set(Kind.PCIE, 'cdn')
        self.assertEqual(
            {
                'abcdmn': set(),
                'abm': {'PCIE_2', 'PCIE_3'},
                'cdn': {'PCIE_2', 'PCIE_3', 'NVLINK_2'},
            },
            self.made('ab', others=switches),
        )
        self.assertEqual(
            {
                'abcdmn': set(),
                'abm': {'PCIE_2', 'PCIE_3', 'NVLINK_2'},
                'cdn': {'PCIE_2', 'PCIE_3', 'NVLINK_2'},
            },
            self.made('ac', others=switches),
        )

    def test_a_set_without_a_place_has_no_parts(self):
        mesh = a_set(Kind.NVLINK, 'bcd', down=frozenset({frozenset('bc')}))
        made = link_tree.build([a_set(Kind.NVLINK, 'abef'), mesh])
        self.assertEqual({frozenset('abef')}, set(of_tree(made)))

    def test_a_part_that_would_be_too_deep(self):
        sets = [
            a_set(Kind.PCIE, (DEVICES + 'kl')[:size], name=str(size))
            for size in range(5, 4 + link_sets.MAX_DEPTH)
        ]
        mesh = a_set(Kind.NVLINK, 'abcd', down=frozenset({frozenset('ab')}))
        made = link_tree.build([mesh, *sets])
        told = [text for text in made.left_out if 'the nvlink set' in text]
        self.assertEqual(2, len(told), made.left_out)


class TestProperties(testtools.TestCase):
    @hypothesis.given(
        SETS,
        strategies.dictionaries(
            strategies.sampled_from(DEVICES),
            strategies.sampled_from(['PGPU', 'NIC']),
        ),
    )
    def test_a_tree(self, sets, classes):
        made = link_tree.build(sets, classes)
        nodes = made.tree.nodes
        for one, other in itertools.combinations(nodes, 2):
            self.assertNotEqual(one.members, other.members)
            self.assertTrue(
                one.members.isdisjoint(other.members)
                or one.members > other.members
            )
        with_nvlink = frozenset().union(
            *(each.members for each in sets if each.kind is Kind.NVLINK)
        )
        faulty = [each for each in sets if each.down]
        for node in nodes:
            self.assertTrue(node.sets)
            for each in node.sets:
                self.assertTrue(
                    each in sets
                    or any(each.members < other.members for other in faulty)
                )
                self.assertLessEqual(each.members, node.members)
                more = node.members - each.members
                self.assertTrue(
                    not more or any(s.kind is Kind.NVLINK for s in node.sets)
                )
            of_nvlink = [s for s in node.sets if s.kind is Kind.NVLINK]
            if of_nvlink:
                self.assertEqual(
                    of_nvlink[0].members, node.members & with_nvlink
                )
        for device in DEVICES:
            self.assertLessEqual(
                len(made.tree.path(device)), link_sets.MAX_DEPTH
            )

    @hypothesis.given(SETS, strategies.randoms())
    def test_the_order_of_the_sets_does_not_matter(self, sets, random):
        made = link_tree.build(sets)
        random.shuffle(sets)
        self.assertEqual(made.tree, link_tree.build(sets).tree)

    @hypothesis.given(nested())
    def test_sets_within_each_other_all_have_a_place(self, sets):
        made = link_tree.build(sets)
        self.assertEqual((), made.left_out)
        self.assertEqual({each.members for each in sets}, set(of_tree(made)))

    @hypothesis.given(SETS)
    def test_no_faulty_set_moves_another_one(self, sets):
        """Faults take no place away, and no promise of another set."""
        able = [
            dataclasses.replace(each, is_able=True, down=frozenset())
            for each in sets
        ]
        before, after = [
            {
                node.members: {(each.kind, each.members) for each in node.sets}
                for node in link_tree.build(some).tree.nodes
            }
            for some in (able, sets)
        ]
        for members, those in before.items():
            self.assertLessEqual(those, after.pop(members))
        # What is left are parts of sets with failed links.
        for those in after.values():
            for kind, part in those:
                self.assertEqual(Kind.NVLINK, kind)
                self.assertTrue(
                    any(each.down and part < each.members for each in sets)
                )
