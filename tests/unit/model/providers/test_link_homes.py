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
from nova_accel.model.links import link_tree
from nova_accel.model.providers import link_homes

Kind = link_sets.Kind


def tree(*members):
    return link_tree.build(
        [
            link_sets.LinkSet(Kind.PCIE, frozenset(some), name=some)
            for some in members
        ]
    ).tree


def names(homes):
    return {
        device: [*(node.name for node in home.parents), home.name]
        for device, home in homes.items()
    }


class TestHomes(testtools.TestCase):
    def test_the_smallest_set_is_its_pool(self):
        homes = link_homes.homes(
            dict.fromkeys('abcd', 'gpu'), tree('abcd', 'ab', 'cd')
        )
        self.assertEqual(
            {
                'a': ['abcd', 'ab'],
                'b': ['abcd', 'ab'],
                'c': ['abcd', 'cd'],
                'd': ['abcd', 'cd'],
            },
            names(homes),
        )

    def test_a_set_of_several_kinds_is_above_its_pools(self):
        homes = link_homes.homes({'a': 'gpu', 'b': 'nic'}, tree('ab'))
        self.assertEqual({'a': ['ab', 'ab'], 'b': ['ab', 'ab']}, names(homes))

    def test_a_set_with_one_part_is_no_provider(self):
        homes = link_homes.homes({'a': 'gpu', 'b': 'gpu'}, tree('abc', 'ab'))
        self.assertEqual({'a': ['ab'], 'b': ['ab']}, names(homes))

    def test_no_set(self):
        homes = link_homes.homes({'x': 'gpu'}, tree('ab'))
        self.assertEqual({'x': link_homes.NOWHERE}, homes)
        self.assertEqual(((), ()), (homes['x'].prefix, homes['x'].suffix))

    def test_other_parents_make_another_suffix(self):
        owners = dict.fromkeys('abcde', 'gpu')
        suffixes = {
            link_homes.homes(owners, tree(*members))['a'].suffix
            for members in (['ab'], ['abc', 'ab'], ['abcd', 'ab'])
        }
        self.assertEqual(3, len(suffixes))
        self.assertIn((), suffixes)


class TestPools(testtools.TestCase):
    def test_of_one_set_and_one_kind(self):
        pools = link_homes.pools(
            {'a': 'gpu', 'b': 'gpu', 'c': 'nic', 'x': 'gpu', 'y': 'gpu'},
            tree('abc'),
        )
        self.assertEqual(
            {'a': 'ab', 'b': 'ab', 'c': 'c', 'x': 'xy', 'y': 'xy'},
            {device: ''.join(sorted(pool)) for device, pool in pools.items()},
        )
