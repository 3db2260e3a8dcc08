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

from nova_accel.model.units import host_links
from unit.model import boards

USED = st.sets(st.integers(0, 7))


def pairs(*numbers, amount=2):
    return {(f'host-pair-{number}', 'PGPU'): amount for number in numbers}


class TestPlaces(testtools.TestCase):
    def names(self, link, size, **kwargs):
        return [
            place.name.split(' ')[0]
            for place in boards.links(**kwargs).places(link, size)
        ]

    def test_exact_ones(self):
        self.assertEqual(['board'], self.names('nvlink', 8))
        self.assertEqual({'half_0', 'half_1'}, set(self.names('nvlink', 4)))
        self.assertEqual([], self.names('nvlink', 3))
        self.assertEqual({'half_0', 'half_1'}, set(self.names('numa', 3)))

    def test_also_those_that_are_not_free(self):
        self.assertEqual(['board'], self.names('nvlink', 8, used=range(8)))

    def test_their_pools(self):
        [place] = [
            place
            for place in boards.links().places('nvlink', 4)
            if place.name.startswith('half_1')
        ]
        self.assertEqual({'host-pair-2', 'host-pair-3'}, place.rp_uuids)

    def test_small_sets_come_first(self):
        pools = boards.pools()
        large = host_links.HostLinks(pools)
        self.assertEqual(4, len(large.places('nvlink', 2)[0].rp_uuids) * 4)


class TestHarm(testtools.TestCase):
    def test_a_whole_board(self):
        self.assertEqual(
            host_links.Harm(span=8, broken=8, left=0),
            boards.links().harm(pairs(0, 1, 2, 3)),
        )

    def test_a_pair_breaks_what_is_above_it(self):
        for used, broken in (((), 8), ({4}, 4), ({0}, 2), ({0, 4, 5}, 2)):
            self.assertEqual(
                (2, broken),
                boards.links(used).harm(pairs(1))[:2],
                used,
            )

    def test_one_gpu_beside_a_used_one_breaks_nothing(self):
        links = boards.links({0})
        self.assertEqual(1, links.harm(pairs(0, amount=1)).broken)
        self.assertEqual(2, links.harm(pairs(1, amount=1)).broken)
        self.assertEqual(4, links.harm(pairs(2, amount=1)).broken)

    def test_pools_of_two_halves_span_the_board(self):
        self.assertEqual(8, boards.links().harm(pairs(0, 2)).span)

    def test_other_pools_do_not_count(self):
        self.assertEqual(
            host_links.Harm(),
            boards.links().harm({('elsewhere', 'PGPU'): 1}),
        )

    @given(USED, st.sets(st.integers(0, 3), min_size=1))
    def test_it_is_never_less_than_what_is_taken(self, used, numbers):
        links = boards.links(used)
        free = [
            number
            for number in numbers
            if not used & {number * 2, number * 2 + 1}
        ]
        if free:
            harm = links.harm(pairs(*free))
            self.assertGreaterEqual(harm.span, 2 * len(free))
            self.assertGreaterEqual(harm.broken, 2)
            self.assertEqual(8 - len(used) - 2 * len(free), harm.left)
            self.assertEqual(harm, links.harm(pairs(*free)))
