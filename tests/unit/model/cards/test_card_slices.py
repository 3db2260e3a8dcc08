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
import json
import pathlib

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model.cards import card_slice
from nova_accel.model.cards import card_slices

WHOLE_CARD = card_slice.WHOLE_CARD

#: Product -> its table, as vendors' documents and tools print it.
TABLES = {
    name: table
    for name, table in json.loads(
        (pathlib.Path(__file__).parent / 'mig_tables.json').read_text()
    ).items()
    if name != '_source'
}

#: Product -> how many contents its card may have, the empty one included. With
#: eight memory slices: 38 of one half times 19 of the other, and the whole.
CONTENTS = {
    name: 38 * 19 + 1 if table['memory_slices'] == 8 else 5 * 5 + 1
    for name, table in TABLES.items()
}


def positions_of(table):
    """All (profile, start) of a table, but for media engines."""
    return [
        (number, start)
        for number, profile in enumerate(table['profiles'])
        if not profile['name'].endswith('+me')
        for start in profile['starts']
    ]


def instance(table, position):
    """A position, as a card of many shapes offers it."""
    number, start = position
    profile = table['profiles'][number]
    part = WHOLE_CARD // table['memory_slices']
    return card_slice.CardSlice(
        f'mig:{profile["name"]}',
        card_slice.MIG,
        start * part,
        profile['memory_slices'] * part,
    )


def vgpus(number, mode=None):
    shape = f'vgpu:a {number}th'
    size = WHOLE_CARD // number
    return [
        card_slice.CardSlice(shape, mode or shape, start, size)
        for start in range(0, WHOLE_CARD, size)
    ]


WHOLE = card_slice.CardSlice('whole', card_slice.WHOLE, 0, WHOLE_CARD)
MIG = [
    instance(TABLES['H100-80GB'], position)
    for position in positions_of(TABLES['H100-80GB'])
]
#: A card that can be all that a card can be.
ALL = frozenset(
    [
        WHOLE,
        *MIG,
        *vgpus(3),
        *vgpus(5),
        *itertools.chain(
            *(vgpus(number, card_slice.VGPU) for number in (1, 2, 4, 8))
        ),
    ]
)
SHAPES = sorted({each.shape for each in ALL})


def reachable(offered):
    """All contents of a card, by taking one free slice after the other."""
    found = {frozenset()}
    new = [frozenset()]
    while new:
        taken = new.pop()
        for each in card_slices.free(offered, taken):
            more = taken | {each}
            if more not in found:
                found.add(more)
                new.append(more)
    return found


class Rules:
    """The limits of a table, on the axes of the card itself."""

    def __init__(self, table):
        self.table = table

    def memory(self, position):
        number, start = position
        size = self.table['profiles'][number]['memory_slices']
        return set(range(start, start + size))

    def is_disjoint(self, positions):
        used = [self.memory(position) for position in positions]
        return sum(map(len, used)) == len(set().union(*used))

    def is_within_limits(self, positions):
        """Whether the compute slices and the numbers of instances do."""
        numbers = [number for number, _start in positions]
        profiles = self.table['profiles']
        return sum(
            profiles[number]['compute_slices'] for number in numbers
        ) <= self.table['compute_slices'] and all(
            numbers.count(number) <= profile['max_instances']
            for number, profile in enumerate(profiles)
        )

    def allowed(self):
        """All sets of positions within all limits, by exhaustive search.

        A part of an allowed set is allowed, so that no way ends early.
        """
        found = [()]
        for position in positions_of(self.table):
            found += [
                (*others, position)
                for others in found
                if self.is_disjoint([*others, position])
                and self.is_within_limits([*others, position])
            ]
        return found


class TestTables(testtools.TestCase):
    """Each product's card is all that its table allows, and nothing else."""

    def test_all_that_a_table_allows_is_reachable_and_nothing_else(self):
        sizes = {}
        for name, table in TABLES.items():
            offered = [
                instance(table, position) for position in positions_of(table)
            ]
            allowed = {
                frozenset(instance(table, position) for position in positions)
                for positions in Rules(table).allowed()
            }
            self.assertEqual(allowed, reachable(offered), name)
            sizes[name] = len(allowed)
        self.assertEqual(CONTENTS, sizes)

    def test_disjoint_memory_implies_the_other_limits(self):
        """So no count is needed beside the places, but for media engines."""
        for name, table in TABLES.items():
            rules = Rules(table)
            position_of = {
                instance(table, position): position
                for position in positions_of(table)
            }
            for taken in reachable(list(position_of)):
                self.assertTrue(
                    rules.is_within_limits(
                        [position_of[each] for each in taken]
                    ),
                    (name, taken),
                )

    def test_media_engines_would_need_a_count(self):
        table = TABLES['A100-40GB']
        rules = Rules(table)
        number = [profile['name'] for profile in table['profiles']].index(
            '1g.5gb+me'
        )
        two = [(number, 0), (number, 1)]
        self.assertTrue(rules.is_disjoint(two))
        self.assertFalse(rules.is_within_limits(two))

    def test_a_card_is_in_one_mode_at_a_time(self):
        """Also one that can be all: as many contents as all modes have."""
        self.assertEqual(
            1
            + sum(
                len(reachable([each for each in ALL if each.mode == mode])) - 1
                for mode in {each.mode for each in ALL}
            ),
            len(reachable(ALL)),
        )


@st.composite
def contents(draw):
    """What guests may have of a card that can be all."""
    taken = frozenset()
    for _guest in range(draw(st.integers(0, 8))):
        free = card_slices.free(ALL, taken)
        if not free:
            break
        taken |= {draw(st.sampled_from(free))}
    return taken


class TestCardSlices(testtools.TestCase):
    @given(st.sampled_from(SHAPES), contents(), st.booleans())
    def test_the_best_is_free_and_no_free_one_is_better(
        self, shape, taken, is_packed
    ):
        free = [
            each
            for each in card_slices.free(ALL, taken)
            if each.shape == shape
        ]
        best = card_slices.best(shape, ALL, taken, is_packed)
        if best is None:
            self.assertEqual([], free)
            return
        self.assertEqual(shape, best.shape)
        self.assertFalse(any(best.excludes(each) for each in taken))
        self.assertEqual(
            min(
                card_slices.harm(each, ALL, taken, is_packed) for each in free
            ),
            card_slices.harm(best, ALL, taken, is_packed),
        )

    @given(contents(), st.data())
    def test_what_is_lost_adds_up(self, taken, data):
        """A slice loses what it breaks now, or has been lost before."""
        free = card_slices.free(ALL, taken)
        if not free:
            return
        chosen = data.draw(st.sampled_from(free))
        after = card_slices.free(ALL, taken | {chosen})
        self.assertLess(set(after), set(free))
        harm = card_slices.harm(chosen, ALL, taken)
        self.assertEqual(
            sum(each.size for each in free) - sum(each.size for each in after),
            harm.lost,
        )
        for other in after:
            self.assertLessEqual(
                card_slices.harm(other, ALL, taken | {chosen}).lost,
                card_slices.harm(other, ALL, taken).lost,
            )

    @given(contents(), st.data())
    def test_a_slice_within_another_loses_no_more(self, taken, data):
        free = card_slices.free(ALL, taken)
        for large, small in itertools.permutations(free, 2):
            if (
                large.mode == small.mode
                and large.start <= small.start
                and small.end <= large.end
            ):
                self.assertLessEqual(
                    card_slices.harm(small, ALL, taken).lost,
                    card_slices.harm(large, ALL, taken).lost,
                )

    @given(st.sampled_from(SHAPES), contents())
    def test_no_empty_card_is_broken_while_another_has_room(
        self, shape, taken
    ):
        """Even one that could be nothing else."""
        best = card_slices.best(shape, ALL, taken)
        if not taken or best is None:
            return
        alone = frozenset([best])
        self.assertLess(
            card_slices.harm(best, ALL, taken),
            card_slices.harm(best, alone, frozenset()),
        )
        self.assertGreater(
            card_slices.harm(best, ALL, taken, is_packed=False),
            card_slices.harm(best, alone, frozenset(), is_packed=False),
        )

    def test_the_card_that_could_be_least_else_comes_first(self):
        shape = MIG[0].shape
        self.assertLess(
            card_slices.harm(MIG[0], frozenset(MIG), frozenset()),
            card_slices.harm(MIG[0], ALL, frozenset()),
        )
        self.assertIsNotNone(card_slices.best(shape, MIG, ()))

    def test_of_two_that_lose_as_much_the_fuller_card_comes_first(self):
        eighths = vgpus(8)
        self.assertLess(
            card_slices.harm(eighths[0], eighths, eighths[3:]),
            card_slices.harm(eighths[0], eighths, eighths[4:]),
        )

    def test_small_instances_leave_the_half_of_the_large_one(self):
        """Seven compute slices: one half of the memory has three of them."""
        taken = frozenset()
        starts = []
        for shape in ('1g.10gb', '2g.20gb', '4g.40gb'):
            best = card_slices.best(f'mig:{shape}', MIG, taken)
            starts.append(best.start * 8 // WHOLE_CARD)
            taken |= {best}
        self.assertEqual([6, 4, 0], starts)

    def test_a_guest_may_have_what_is_no_longer_offered(self):
        """The line of a card may name fewer shapes than its guests have."""
        gone = vgpus(2, card_slice.VGPU)[0]
        offered = vgpus(4, card_slice.VGPU)
        self.assertEqual(
            set(offered[2:]), set(card_slices.free(offered, [gone]))
        )
        self.assertEqual(
            offered[2], card_slices.best(offered[0].shape, offered, [gone])
        )
        self.assertEqual([], card_slices.free([WHOLE, *MIG], [gone]))
        self.assertIsNone(
            card_slices.best(
                offered[0].shape,
                offered,
                [dataclasses.replace(gone, mode='another')],
            )
        )


class TestObstacle(testtools.TestCase):
    def test_each(self):
        part = card_slice.WHOLE_CARD // 8

        def instance(start, size):
            return card_slice.CardSlice(
                'mig', card_slice.MIG, start * part, size * part
            )

        vgpu = vgpus(4)[0]
        for wanted, taken, why in (
            (WHOLE, [vgpu], f'on cards that are {vgpu.shape}'),
            (vgpu, [WHOLE], 'on cards that are whole'),
            (vgpu, [instance(0, 1)], 'on cards that are mig'),
            (instance(0, 4), [instance(0, 4), instance(5, 1)], '37 % free'),
            (
                instance(0, 4),
                [instance(2, 1), instance(5, 1)],
                '75 % free, not in one piece',
            ),
        ):
            text = card_slices.obstacle(wanted, frozenset(taken))
            self.assertEqual(why, text.removeprefix('on cards with '))
