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

import collections
import itertools
import json
import pathlib
import random
from xml.etree import ElementTree

import fixtures
import testtools

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices
from rig.benchmark import main
from rig.benchmark.simulation import shape_bound
from rig.benchmark.simulation import shape_picture
from rig.benchmark.simulation import shapes

REQUESTS = 300
CARDS = 20
PART = card_slice.WHOLE_CARD // 8


def counts(slices):
    """A set of units without their places, to be compared."""
    return tuple(sorted(each.shape for each in slices))


def contents(is_mixed):
    """All that one card can have at a time, by exhaustive search."""
    offered = frozenset(shapes.slices(is_mixed))
    found = {frozenset()}
    new = [frozenset()]
    while new:
        taken = new.pop()
        more = {
            taken | {each} for each in card_slices.free(offered, taken)
        } - found
        found |= more
        new += more
    return {counts(taken) for taken in found}


class TestBound(testtools.TestCase):
    def test_it_is_exact_on_one_card_and_on_two(self):
        """What fits, by search, and what is one unit too much."""
        for is_mixed in (True, False):
            one = contents(is_mixed)
            two = {
                tuple(sorted(first + second))
                for first, second in itertools.combinations_with_replacement(
                    one, 2
                )
            }
            for number, fitting in ((1, one), (2, two)):
                for units in fitting:
                    self.assertLessEqual(
                        shape_bound.cards(
                            collections.Counter(units), is_mixed
                        ),
                        number,
                        units,
                    )
                for units, shape in itertools.product(
                    fitting, shape_bound.EIGHTHS
                ):
                    more = tuple(sorted((*units, shape)))
                    if more not in fitting:
                        self.assertGreater(
                            shape_bound.cards(
                                collections.Counter(more), is_mixed
                            ),
                            number,
                            more,
                        )


class TestShapes(testtools.TestCase):
    def run_of(self, way, load=0.9):
        return shapes.Run(shapes.Scenario(load, True), way, CARDS)

    def found(self, way):
        return self.run_of(way).figures(random.Random(1), 2 * REQUESTS)

    def test_nothing_is_placed_that_no_order_has_room_for(self):
        for way in shapes.WAYS:
            for outcome in self.run_of(way, 1.5).outcomes(
                random.Random(2), REQUESTS
            ):
                self.assertLessEqual(
                    outcome.is_placed, outcome.is_possible, way
                )

    def test_the_policy_places_most(self):
        placed = {
            way: self.found(way)['placed_of_possible_pct']
            for way in shapes.WAYS
        }
        self.assertEqual('least harm', max(placed, key=placed.get), placed)
        self.assertGreaterEqual(placed['least harm'], 95, placed)

    def test_novas_order_leaves_no_whole_card(self):
        found = {
            way: self.found(way)['whole_cards_of_possible_pct']
            for way in ('least harm', 'most free first')
        }
        self.assertLess(
            2 * found['most free first'], found['least harm'], found
        )

    def test_cards_of_fixed_shapes_are_divided_as_is_asked(self):
        offered = frozenset(shapes.slices(True))
        divided = shapes.fixed_cards(offered, 200, 500.0)
        self.assertEqual(200, len(divided))
        for slices in divided:
            for one, other in itertools.combinations(slices, 2):
                self.assertFalse(one.excludes(other))
        number = collections.Counter(
            each.shape for slices in divided for each in slices
        )
        self.assertEqual({*shapes.MIX}, {*number} & {*shapes.MIX})
        self.assertGreater(number['vgpu:10C'], number['vgpu:40C'])


class TestPicture(testtools.TestCase):
    def test_a_card_is_drawn_with_what_is_stranded(self):
        offered = frozenset(shapes.slices(True))
        last = card_slice.CardSlice(
            'mig:1g.10gb', card_slice.MIG, 6 * PART, PART
        )
        self.assertEqual(
            [(7 * PART, 8 * PART)],
            list(shape_picture.stranded(offered, frozenset([last]))),
        )
        self.assertEqual(
            [], list(shape_picture.stranded(offered, frozenset()))
        )
        drawn = shape_picture.svg(
            [offered], [shape_picture.Life(0, last, 8.0, 12.0)], 10.0
        )
        rectangles = [
            element.attrib
            for element in ElementTree.fromstring(drawn)
            if element.tag.endswith('rect')
        ]
        room, stranded, guest = rectangles[-3:]
        self.assertEqual('room', room['class'])
        self.assertEqual('stranded', stranded['class'])
        self.assertEqual(shape_picture.COLOURS[last.shape], guest['fill'])
        for each in (room, stranded, guest):
            self.assertEqual(room['x'], each['x'])
        self.assertAlmostEqual(
            float(guest['y']) + float(guest['height']),
            float(stranded['y']),
            delta=0.02,
        )
        for shape in shapes.MIX:
            self.assertIn(f'>{shape}<', drawn)

    def test_the_command_writes_it(self):
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'cards.svg'
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'rig.benchmark.simulation.shapes.REQUESTS', 20
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch('rig.benchmark.simulation.shapes.SEEDS', 1)
        )
        out = self.useFixture(fixtures.StringStream('stdout')).stream
        with fixtures.MonkeyPatch('sys.stdout', out):
            self.assertEqual(
                0,
                main.main(
                    [
                        'scheduler',
                        *('--simulate', 'shapes'),
                        *('--picture', str(path)),
                    ]
                ),
            )
            out.seek(0)
        self.assertEqual(
            {*shapes.SCENARIOS}, {*json.loads(out.read())['scenarios']}
        )
        ElementTree.parse(path)
