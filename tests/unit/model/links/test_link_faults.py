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
from nova_accel.model.links import link_faults

Kind = link_sets.Kind

GPUS = 'abcdefgh'
CARDS = 'mno'


def pairs(*texts):
    return frozenset(map(frozenset, texts))


def a_mesh(members=GPUS, down=frozenset()):
    return link_sets.LinkSet(Kind.NVLINK, frozenset(members), down=down)


def parts(mesh, *places):
    """The members of the parts; the mesh is a place of its own."""
    own = max((mesh.members, *map(frozenset, places)), key=len)
    return {
        ''.join(sorted(part.members))
        for part in link_faults.parts(
            mesh, own, [own, *map(frozenset, places)]
        )
    }


def crosses(some, others):
    return not (some.isdisjoint(others) or some <= others or others <= some)


class TestMarked(testtools.TestCase):
    def test_only_nvlink_without_partitions(self):
        sets = [
            a_mesh('abc'),
            link_sets.LinkSet(Kind.NVLINK, frozenset('ab'), is_exact=True),
            link_sets.LinkSet(Kind.PCIE, frozenset('ab')),
        ]
        down = pairs('ab', 'cd')
        self.assertEqual(
            [pairs('ab'), frozenset(), frozenset()],
            [each.down for each in link_faults.marked(sets, down)],
        )


class TestParts(testtools.TestCase):
    def test_a_bridge(self):
        self.assertEqual(set(), parts(a_mesh('ab', pairs('ab'))))

    def test_nothing_is_down(self):
        self.assertEqual({'abcd'}, parts(a_mesh('abcd')))

    def test_two_pairs_are_left_of_four(self):
        self.assertEqual({'ac', 'bd'}, parts(a_mesh('abcd', pairs('ab'))))
        self.assertEqual(
            {'ac', 'bd'}, parts(a_mesh('abcd', pairs('ab', 'cd')))
        )

    def test_a_gpu_that_lost_all_its_links(self):
        self.assertEqual(
            {'bcd'}, parts(a_mesh('abcd', pairs('ab', 'ac', 'ad')))
        )

    def test_two_fours_are_left_of_eight(self):
        self.assertEqual(
            [4, 4], list(map(len, parts(a_mesh(down=pairs('ab')))))
        )

    def test_who_fits_few_others_comes_first(self):
        """Otherwise d would be alone."""
        self.assertEqual(
            {'ac', 'bd'}, parts(a_mesh('abcd', pairs('ad', 'cd')))
        )

    def test_a_place_is_in_one_part(self):
        four = a_mesh('abcd', pairs('ab'))
        self.assertEqual({'cd'}, parts(four, 'ab', 'cd'))
        self.assertEqual({'acd'}, parts(four, 'cd'))

    def test_a_place_with_a_link_down_is_divided(self):
        mesh = a_mesh('abcdef', pairs('ab'))
        self.assertEqual({'ac', 'def'}, parts(mesh, 'abc'))

    def test_network_cards_are_with_their_switch(self):
        mesh = a_mesh('abcdef', pairs('ae', 'af', 'be', 'bf'))
        found = {
            ''.join(sorted(part.place))
            for part in link_faults.parts(
                mesh,
                frozenset('abcdefmno'),
                list(map(frozenset, ['abm', 'cdn', 'ef', 'abcdefmno'])),
            )
        }
        self.assertEqual({'abcdmn', 'ef'}, found)


@strategies.composite
def faulty(draw):
    """A mesh with links that are down, and the places of a tree."""
    down = draw(
        strategies.frozensets(
            strategies.sampled_from(
                [*map(frozenset, itertools.combinations(GPUS, 2))]
            ),
            max_size=16,
        )
    )
    devices = draw(strategies.permutations(GPUS + CARDS))
    places = {frozenset(devices)}
    for _time in range(draw(strategies.integers(0, 6))):
        first = draw(strategies.integers(0, len(devices) - 2))
        last = draw(strategies.integers(first + 2, len(devices)))
        place = frozenset(devices[first:last])
        if not any(crosses(place, other) for other in places):
            places.add(place)
    return a_mesh(down=down), places


def is_joined(members, mesh):
    return not any(pair <= members for pair in mesh.down)


class TestProperties(testtools.TestCase):
    def found(self, case):
        mesh, places = case
        return list(
            link_faults.parts(mesh, max(places, key=len), list(places))
        )

    @hypothesis.given(faulty())
    def test_each_two_of_a_part_are_joined(self, case):
        mesh, _places = case
        for part in self.found(case):
            self.assertTrue(is_joined(part.members, mesh), part)
            self.assertEqual(part.members, part.place & mesh.members)

    @hypothesis.given(faulty())
    def test_the_places_are_still_a_tree(self, case):
        _mesh, places = case
        found = self.found(case)
        for part in found:
            for place in places:
                self.assertFalse(crosses(part.place, place), (part, place))
        for one, other in itertools.combinations(found, 2):
            self.assertTrue(one.place.isdisjoint(other.place))

    @hypothesis.given(faulty())
    def test_nothing_that_is_joined_is_lost(self, case):
        """All that still could be offered is offered."""
        mesh, places = case
        parts = [part.members for part in self.found(case)]
        taken = [place & mesh.members for place in places]
        for size in range(2, len(GPUS) + 1):
            for members in map(frozenset, itertools.combinations(GPUS, size)):
                self.assertTrue(
                    not is_joined(members, mesh)
                    or any(members <= part for part in parts)
                    or any(crosses(members, part) for part in parts)
                    or any(crosses(members, place) for place in taken),
                    members,
                )
