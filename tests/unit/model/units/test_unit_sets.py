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

from nova_accel.model.units import free_units
from nova_accel.model.units import unit_sets


def deployable(number, free, total, *sets):
    return free_units.FreeUnits(
        f'deployable{number}', 'rp', 'VGPU', frozenset(), free, total, sets
    )


class TestTree(testtools.TestCase):
    def test_a_set_has_what_its_parts_have(self):
        root = unit_sets.tree(
            [
                deployable(0, 1, 4, 'numa0', 'card'),
                deployable(1, 2, 2, 'numa0'),
                deployable(2, 0, 1),
            ],
            {'deployable1': 2},
        )
        self.assertEqual((7, 3, 2, 3), root[1:5])
        [numa0] = [part for part in root.parts if part.name == 'numa0']
        self.assertEqual((6, 3, 2, 2), numa0[1:5])

    def test_sets_of_one_name_in_different_sets(self):
        root = unit_sets.tree(
            [
                deployable(0, 1, 1, 'numa0', 'pair0'),
                deployable(1, 0, 1, 'numa1', 'pair0'),
            ],
            {},
        )
        self.assertEqual([1, 0], [part.free for part in root.parts])


class TestBest(testtools.TestCase):
    def test_few_sets_if_none_is_large_enough(self):
        pool = [
            deployable(0, 1, 4),
            deployable(1, 3, 4),
            deployable(2, 2, 4),
        ]
        root = unit_sets.tree(
            pool, {each.deployable_uuid: each.free for each in pool}
        )
        self.assertEqual(
            {'deployable1': 3, 'deployable0': 1},
            unit_sets.best(root, 4, is_packed=True),
        )


class TestDamage(testtools.TestCase):
    def test_nothing_is_taken(self):
        root = unit_sets.tree([deployable(0, 1, 1)], {})
        self.assertEqual((0, 0, 0), unit_sets.damage(root, {}))

    def test_a_part_in_use(self):
        root = unit_sets.tree([deployable(0, 1, 4), deployable(1, 4, 4)], {})
        self.assertEqual((1, 1, 1), unit_sets.damage(root, {'deployable0': 1}))
        self.assertEqual((1, 4, 4), unit_sets.damage(root, {'deployable1': 1}))
        self.assertEqual(
            (2, 4, 5),
            unit_sets.damage(root, {'deployable0': 1, 'deployable1': 1}),
        )
