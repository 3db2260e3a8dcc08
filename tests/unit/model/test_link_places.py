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

from nova_accel.model import bounds
from nova_accel.model import link_places
from nova_accel.model import link_sets

KINDS = st.sampled_from(['nvlink', 'pcie', 'numa'])
SIZES = st.tuples(st.integers(2, 64), st.integers(2, 64)).map(
    lambda pair: range(min(pair), max(pair) + 1)
)


class TestLinkPlaces(testtools.TestCase):
    @given(st.dictionaries(KINDS, SIZES))
    def test_what_is_told_is_read(self, sizes):
        self.assertEqual(
            {(kind, size) for kind, those in sizes.items() for size in those},
            link_places.joins(link_places.to_text('numa_0', sizes)),
        )

    def test_the_text(self):
        self.assertEqual(
            'numa_0 nvlink=4 numa=2-8',
            link_places.to_text(
                'numa_0',
                {'nvlink': range(4, 5), 'root': range(0), 'numa': range(2, 9)},
            ),
        )

    def test_the_longest_text_can_be_reported(self):
        text = link_places.to_text(
            'x' * link_sets.MAX_NAME,
            {kind: range(10, 65) for kind in link_sets.Kind},
        )
        self.assertLessEqual(len(text), bounds.MAX_LINK_SET)

    @given(st.text())
    def test_no_text_joins_more_than_a_request_may_ask_for(self, text):
        for _kind, size in link_places.joins(text):
            self.assertLessEqual(size, link_sets.MAX_SIZE)

    def test_what_is_malformed_joins_nothing(self):
        for text in (
            '',
            'numa_0',
            'a nvlink',
            'a nvlink=',
            'a nvlink=4-',
            'a nvlink=-4',
            'a nvlink=999',
            'a nvlink=5-3',
            'a nvlink=\u0664',
            'a Nvlink=4',
        ):
            self.assertEqual(frozenset(), link_places.joins(text), text)

    def test_sizes(self):
        places = ['numa_0 numa=2-3', 'pair nvlink=2', 'board nvlink=8 numa=4']
        self.assertEqual([2, 8], link_places.sizes('nvlink', places))
        self.assertEqual([2, 3, 4], link_places.sizes('numa', places))
        self.assertEqual([], link_places.sizes('pcie', places))

    def test_of_places(self):
        self.assertEqual(
            {('numa', 2), ('numa', 3), ('nvlink', 2)},
            link_places.of_places(('numa_0 numa=2-3', 'pair nvlink=2')),
        )
        self.assertEqual(frozenset(), link_places.of_places(()))
