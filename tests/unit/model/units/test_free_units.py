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
from unit.model.cards import slices


class TestSetsOf(testtools.TestCase):
    def test_the_largest_first(self):
        self.assertEqual(('numa1', 'card'), free_units.sets_of(1, 'card'))
        self.assertEqual(('card',), free_units.sets_of(None, 'card'))


class TestFreed(testtools.TestCase):
    def units(self, **facts):
        return free_units.FreeUnits(
            'uuid',
            'pool',
            **{
                'resource_class': 'FPGA',
                'traits': frozenset({'CUSTOM_A'}),
                'free': 1,
                'total': 4,
                'sets': ('numa0', 'card'),
                **facts,
            },
        )

    def test_more_are_free(self):
        self.assertEqual(
            self.units(free=3), self.units().freed(free_units.HeldUnits(2))
        )

    def test_never_more_than_there_are(self):
        for held in (3, 4, 9):
            self.assertEqual(
                self.units(free=4),
                self.units().freed(free_units.HeldUnits(held)),
            )

    def test_slices(self):
        first, second, third = (
            slices.eighths('mig:1g.10gb', start, 1) for start in range(3)
        )
        before = self.units(
            slices=(first, second, third), taken=(first, second)
        )
        for held, left in (
            ((first,), (second,)),
            ((second, first), ()),
            # It was read before the server got it.
            ((third,), (first, second)),
        ):
            found = before.freed(free_units.HeldUnits(len(held), held))
            self.assertEqual(left, found.taken)
            self.assertEqual(before.slices, found.slices)
