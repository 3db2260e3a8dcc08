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

import testtools

from nova_accel.model import link_sets
from nova_accel.model import naming

Kind = link_sets.Kind


def a_set(kind, members, **keys):
    return link_sets.LinkSet(kind, frozenset(members), **keys)


def node(*sets, more=''):
    members = frozenset(more).union(*(each.members for each in sets))
    return link_sets.SetNode(''.join(sorted(members)), members, sets)


class TestSizes(testtools.TestCase):
    def test_any_part_or_the_whole(self):
        self.assertEqual([2, 3], list(a_set(Kind.PCIE, 'abc').sizes))
        self.assertEqual(
            [3], list(a_set(Kind.NVLINK, 'abc', is_exact=True).sizes)
        )

    def test_nothing_to_promise(self):
        for each in (
            a_set(Kind.ROOT, 'abc'),
            a_set(Kind.PCIE, 'abc', is_able=False),
            a_set(Kind.PCIE, 'a'),
        ):
            self.assertEqual([], list(each.sizes))

    def test_they_are_bounded(self):
        many = map(str, range(1000))
        self.assertEqual(link_sets.MAX_SIZE, a_set(Kind.NUMA, many).sizes[-1])


class TestTree(testtools.TestCase):
    def setUp(self):
        super().setUp()
        pair = a_set(Kind.NVLINK, 'ab', is_exact=True)
        four = a_set(Kind.NVLINK, 'abcd', is_exact=True)
        numa = a_set(Kind.NUMA, 'abcdn')
        self.tree = link_sets.SetTree(
            (node(numa), node(four), node(pair)), frozenset('abcd')
        )

    def test_path(self):
        self.assertEqual(
            ['abcdn', 'abcd', 'ab'],
            [each.name for each in self.tree.path('a')],
        )
        self.assertEqual((), self.tree.path('x'))

    def test_traits_of_a_node(self):
        numa, four, _pair = self.tree.nodes
        self.assertEqual({naming.link_trait('nvlink', 4)}, four.traits)
        self.assertEqual(
            {naming.link_trait('numa', size) for size in (2, 3, 4, 5)},
            numa.traits,
        )

    def test_traits_of_a_pool(self):
        self.assertEqual(
            {
                naming.link_trait('nvlink', 2),
                naming.link_trait('numa', 2),
                naming.FABRIC_TRAIT,
            },
            self.tree.pool_traits(frozenset('ab')),
        )
        # Not all of an exact set.
        self.assertEqual(
            {naming.FABRIC_TRAIT}, self.tree.pool_traits(frozenset('a'))
        )
        self.assertEqual(frozenset(), self.tree.pool_traits(frozenset('n')))
        self.assertEqual(frozenset(), self.tree.pool_traits(frozenset()))
