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
import zlib

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_path
from nova_accel.model.links import guest_pcie

M = guest_pcie.Model

#: A device: its root complex, the switches above it from above, its group.
SHAPES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(st.integers(0, 2), max_size=3).map(tuple),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=guest_pcie.MAX_FUNCTIONS,
)

#: The NUMA node of each root complex.
NODES = st.lists(st.none() | st.integers(0, 3), min_size=4, max_size=4)

CELLS = st.dictionaries(st.integers(0, 3), st.integers(0, 3))


def addressed(host, *key):
    """An address that no other key has on the host, as good as certainly."""
    number = zlib.crc32(repr((host, key)).encode())
    return pci_address.PciAddress(
        number >> 16, number >> 8 & 0xFF, number >> 3 & 0x1F, number & 7
    )


def a_path(host, number, root, switches, node):
    bridges = [addressed(host, 'port', root, (*switches, number)[0])]
    for depth in range(len(switches)):
        above, below = switches[: depth + 1], (*switches, number)[depth + 1]
        bridges += [
            addressed(host, 'upstream', root, above),
            addressed(host, 'downstream', root, above, below),
        ]
    name = f'pci{zlib.crc32(repr((host, root)).encode()):08x}:{root:02x}'
    return pci_path.PciPath(name, tuple(bridges), node)


def functions(shapes, nodes, host=0):
    return [
        guest_pcie.GuestFunction(
            str(addressed(host, 'function', number)),
            group,
            a_path(host, number, root, switches, nodes[root]),
        )
        for number, (root, switches, group) in enumerate(shapes)
    ]


def above(tree, place):
    """The controllers above a place, from above."""
    by_index = {each.index: each for each in tree.controllers}
    found = []
    while place.bus:
        found.insert(0, by_index[place.bus])
        place = found[0].place
    return found


def common(one, other):
    """How many of their first switches two lists of bridges share."""
    return sum(
        1
        for _both in itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(one, other, strict=False)
        )
    )


def switches_of(tree, place):
    return [
        each.index
        for each in above(tree, place)
        if each.model is M.UPSTREAM_PORT
    ]


class TestProperties(testtools.TestCase):
    @given(SHAPES, NODES, st.none() | CELLS, st.sets(st.integers(1, 40)))
    def test_libvirt_can_make_it(self, shapes, nodes, cells, taken):
        those = functions(shapes, nodes)
        tree = guest_pcie.tree(those, cells, taken)
        places = [each.place[:3] for each in tree.controllers]
        places += [place[:3] for place in tree.places.values()]
        self.assertEqual(len(places), len(set(places)))
        self.assertEqual({each.name for each in those}, set(tree.places))
        indexes = [each.index for each in tree.controllers]
        free = (number for number in itertools.count(1) if number not in taken)
        self.assertEqual(list(itertools.islice(free, len(indexes))), indexes)
        models = {each.index: each.model for each in tree.controllers}
        for each in tree.controllers:
            self.assertIn(
                models.get(each.place.bus),
                {
                    M.EXPANDER: [None],
                    M.ROOT_PORT: [None] if cells is None else [M.EXPANDER],
                    M.UPSTREAM_PORT: [M.ROOT_PORT, M.DOWNSTREAM_PORT],
                    M.DOWNSTREAM_PORT: [M.UPSTREAM_PORT],
                }[each.model],
            )
            self.assertLess(each.place.slot, 32)
            self.assertLess(each.place.bus, each.index)
        for place in tree.places.values():
            self.assertIn(models[place.bus], (M.ROOT_PORT, M.DOWNSTREAM_PORT))

    @given(SHAPES, NODES, CELLS)
    def test_each_bridge_has_a_bus_number(self, shapes, nodes, cells):
        tree = guest_pcie.tree(functions(shapes, nodes), cells)
        number = guest_pcie.FIRST_BUS
        for each in tree.controllers:
            if each.model is M.EXPANDER:
                self.assertEqual(number, each.bus_number)
            else:
                self.assertIsNone(each.bus_number)
            number += 1
        self.assertLessEqual(number, 256)

    @given(SHAPES, NODES, st.none() | CELLS)
    def test_what_is_near_on_the_host_is_near_in_the_guest(
        self, shapes, nodes, cells
    ):
        those = functions(shapes, nodes)
        tree = guest_pcie.tree(those, cells)
        seen = {}
        for one, other in itertools.permutations(those, 2):
            on_host = common(
                [one.path.root, *one.path.switches()],
                [other.path.root, *other.path.switches()],
            )
            ways = [
                above(tree, tree.places[each.name]) for each in (one, other)
            ]
            if cells is not None:
                self.assertEqual(on_host > 0, ways[0][0] == ways[1][0])
            in_guest = common(
                *(
                    switches_of(tree, tree.places[each.name])
                    for each in (one, other)
                )
            )
            self.assertEqual(on_host > 1, in_guest > 0)
            seen[one.name, other.name] = on_host, in_guest
        for (one, near), nearness in seen.items():
            for (first, _far), other in seen.items():
                if first == one and nearness[0] > max(other[0], 1):
                    self.assertGreater(nearness[1], other[1], near)

    @given(SHAPES, NODES, CELLS)
    def test_cells(self, shapes, nodes, cells):
        those = functions(shapes, nodes)
        tree = guest_pcie.tree(those, cells)
        for each in those:
            expander = above(tree, tree.places[each.name])[0]
            self.assertEqual(cells.get(each.path.numa_node), expander.cell)

    @given(SHAPES, NODES, st.none() | CELLS, st.randoms())
    def test_the_same_devices_get_the_same_places(
        self, shapes, nodes, cells, random
    ):
        those = functions(shapes, nodes)
        tree = guest_pcie.tree(those, cells)
        random.shuffle(those)
        self.assertEqual(tree, guest_pcie.tree(those, cells))

    @given(SHAPES, NODES, st.none() | CELLS, st.integers(1, 9))
    def test_another_host_of_the_same_shape_gives_the_same_places(
        self, shapes, nodes, cells, host
    ):
        def made(where):
            those = functions(shapes, nodes, where)
            tree = guest_pcie.tree(those, cells)
            groups = {each.name: each.group for each in those}
            return tree.controllers, {
                place: groups[name] for name, place in tree.places.items()
            }

        self.assertEqual(made(0), made(host))


class TestTree(testtools.TestCase):
    def test_none(self):
        for cells in (None, {}):
            self.assertEqual(
                guest_pcie.PcieTree((), {}), guest_pcie.tree((), cells)
            )

    def test_gpu_and_nic_of_one_switch(self):
        those = functions([(0, (0,), 0), (0, (0,), 1), (1, (0,), 0)], [0, 1])
        tree = guest_pcie.tree(those, {0: 0, 1: 1})
        self.assertEqual(
            [
                (1, M.EXPANDER, (0, 8, 0), 128, 0),
                (2, M.ROOT_PORT, (1, 0, 0), None, None),
                (3, M.UPSTREAM_PORT, (2, 0, 0), None, None),
                (4, M.DOWNSTREAM_PORT, (3, 0, 0), None, None),
                (5, M.DOWNSTREAM_PORT, (3, 1, 0), None, None),
                (6, M.EXPANDER, (0, 9, 0), 133, 1),
                (7, M.ROOT_PORT, (6, 0, 0), None, None),
            ],
            [
                (
                    each.index,
                    each.model,
                    each.place[:3],
                    each.bus_number,
                    each.cell,
                )
                for each in tree.controllers
            ],
        )
        self.assertEqual(
            [4, 5, 7], [tree.places[each.name].bus for each in those]
        )

    def test_a_node_that_the_guest_is_not_on(self):
        those = functions([(0, (), 0), (1, (), 0)], [5, 1])
        tree = guest_pcie.tree(those, {1: 0})
        self.assertEqual(
            [0, None],
            [
                each.cell
                for each in tree.controllers
                if each.model is M.EXPANDER
            ],
        )

    def test_ports_of_the_root_are_aggregated(self):
        tree = guest_pcie.tree(functions([(0, (), 0)] * 10, [0]))
        self.assertEqual(
            [(8, 0, True)]
            + [(8, number, False) for number in range(1, 8)]
            + [(9, 0, True), (9, 1, False)],
            [each.place[1:] for each in tree.controllers],
        )

    def test_too_many(self):
        for shapes, text in (
            ([(0, (), 0)] * 33, '33 devices are more than the 32'),
            ([(root, (), 0) for root in range(17)], '17 root complexes'),
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                guest_pcie.tree,
                functions(shapes, [None] * 17),
                {},
            )
            self.assertIn(text, str(error))

    def test_the_worst_case_has_numbers(self):
        """A binary tree of switches, and a root complex for each pair."""
        shapes = [
            (root, tuple(number >> bit & 1 for bit in (1, 0)), 0)
            for root in range(8)
            for number in range(4)
        ]
        tree = guest_pcie.tree(functions(shapes, [None] * 8), {})
        self.assertLessEqual(guest_pcie.FIRST_BUS + len(tree.controllers), 256)
