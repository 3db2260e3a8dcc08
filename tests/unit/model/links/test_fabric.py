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

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel import exceptions
from nova_accel.model import pci_address
from nova_accel.model.links import fabric

#: Number -> modules: all, halves, pairs, and each alone.
BOARD = {
    0: (1, 2, 3, 4, 5, 6, 7, 8),
    1: (1, 2, 3, 4),
    2: (5, 6, 7, 8),
    3: (1, 3),
    4: (2, 4),
    5: (5, 7),
    6: (6, 8),
    **{module + 6: (module,) for module in range(1, 9)},
}

numbers = strategies.frozensets(strategies.sampled_from(sorted(BOARD)))
modules = strategies.frozensets(strategies.integers(1, 8), min_size=1)


def listed(active=(), unsupported=()):
    return [
        fabric.Partition(
            number,
            frozenset(order),
            number in active,
            number not in unsupported,
            order,
        )
        for number, order in BOARD.items()
    ]


def uuid(number):
    return f'0e8c2b0e-6a67-4f0b-a7ac-{number:012x}'


def function(module):
    return pci_address.PciAddress(0, module, 0, 4)


@strategies.composite
def journals(draw):
    """Entries, one for each partition, and the numbers that are needed."""
    entries = [
        fabric.PartitionEntry(
            number,
            frozenset(BOARD[number]),
            uuid(draw(strategies.integers(0, 3))),
            draw(strategies.sampled_from(fabric.PartitionStep)),
            'boot',
            frozenset({uuid(100 + number)}),
            draw(
                strategies.sampled_from(
                    ((), tuple(map(function, BOARD[number])))
                )
            ),
        )
        for number in sorted(draw(numbers))
    ]
    needed = draw(
        strategies.frozensets(
            strategies.sampled_from([entry.number for entry in entries])
        )
        if entries
        else strategies.just(frozenset())
    )
    return entries, needed


class TestExact(testtools.TestCase):
    @hypothesis.given(modules, numbers)
    def test_exactly_these_modules_or_none(self, wanted, unsupported):
        try:
            found = fabric.exact(listed(unsupported=unsupported), wanted)
        except exceptions.DeviceError as error:
            text = str(error)
            usable = {
                frozenset(order)
                for number, order in BOARD.items()
                if number not in unsupported
            }
            self.assertNotIn(wanted, usable)
            self.assertIn(fabric.modules(wanted), text)
        else:
            self.assertEqual(wanted, found.module_ids)
            self.assertNotIn(found.number, unsupported)

    def test_why_not(self):
        for wanted, unsupported, text in (
            ({2, 3}, (), 'modules 2, 3 are no partition'),
            ({1, 3}, (3,), 'partition 3 (modules 1, 3) of the NVSwitch'),
            ({4}, (10,), 'partition 10 (module 4) of the NVSwitch'),
        ):
            error = self.assertRaises(
                exceptions.DeviceError,
                fabric.exact,
                listed(unsupported=unsupported),
                frozenset(wanted),
            )
            self.assertIn(text, str(error))


class TestConflicts(testtools.TestCase):
    @hypothesis.given(strategies.sampled_from(sorted(BOARD)), numbers)
    def test_active_ones_with_a_common_module(self, number, active):
        partitions = listed(active)
        [partition] = [each for each in partitions if each.number == number]
        self.assertEqual(
            {
                other
                for other in active
                if other != number and set(BOARD[other]) & set(BOARD[number])
            },
            {each.number for each in fabric.conflicts(partition, partitions)},
        )


class TestInOrder(testtools.TestCase):
    def test_the_order_of_the_partition(self):
        partition = fabric.Partition(3, frozenset({1, 3}), False, order=(3, 1))
        self.assertEqual(
            (function(3), function(1)),
            fabric.in_order(partition, {1: function(1), 3: function(3)}),
        )
        self.assertEqual((), fabric.in_order(partition, {}))
        error = self.assertRaises(
            exceptions.DeviceError,
            fabric.in_order,
            partition,
            {3: function(3)},
        )
        self.assertIn('only module 3 have one', str(error))


class TestTold(testtools.TestCase):
    @hypothesis.given(journals())
    def test_no_partition_without_a_guest(self, journal):
        entries, needed = journal
        self.assertEqual(
            sorted(
                entry.number
                for entry in entries
                if entry.number in needed or entry.step == 'active'
            ),
            list(fabric.partitions_to_restore(entries, needed)),
        )


class TestRepairs(testtools.TestCase):
    @hypothesis.given(journals(), numbers)
    def test_then_each_is_as_needed(self, journal, active):
        entries, needed = journal
        found = fabric.repairs(listed(active), entries, needed)
        after = {
            *active,
            *(entry.number for entry in found.activate),
        } - {entry.number for entry in found.deactivate}
        foreign = {each.number for each in found.foreign}
        self.assertEqual(needed | foreign, after)
        self.assertEqual(active - {entry.number for entry in entries}, foreign)
        # What is not needed is not kept in the journal.
        self.assertEqual(
            {entry.number for entry in entries} - needed,
            {entry.number for entry in (*found.deactivate, *found.forget)},
        )

    def test_the_same_number_on_another_board(self):
        entry = fabric.PartitionEntry(
            3, frozenset({1, 2}), 'i', fabric.PartitionStep.ACTIVE, 'boot'
        )
        found = fabric.repairs(listed({3}), [entry], ())
        self.assertEqual((), found.deactivate)
        self.assertEqual((entry,), found.forget)
        self.assertEqual([3], [each.number for each in found.foreign])


class TestEntry(testtools.TestCase):
    @hypothesis.given(journals())
    def test_to_dict_and_back(self, journal):
        for entry in journal[0]:
            self.assertEqual(
                entry, fabric.PartitionEntry.from_dict(entry.to_dict())
            )

    def test_the_same_guests_with_the_same_functions(self):
        entry = fabric.PartitionEntry(
            3, frozenset({1, 2}), uuid(1), fabric.PartitionStep.ACTIVE, 'boot'
        )
        for same in (
            {'step': fabric.PartitionStep.ACTIVATING},
            {'boot_id': 'later'},
        ):
            self.assertTrue(entry.is_same(dataclasses.replace(entry, **same)))
        for differs in (
            {'number': 4},
            {'module_ids': frozenset({1, 3})},
            {'instance_uuid': uuid(2)},
            {'functions': (function(1), function(2))},
        ):
            self.assertFalse(
                entry.is_same(dataclasses.replace(entry, **differs))
            )

    def test_what_is_wrong_is_named(self):
        good = fabric.PartitionEntry(
            3, frozenset({1, 2}), uuid(1), fabric.PartitionStep.ACTIVE, 'boot'
        ).to_dict()
        for name, wrong, fault in (
            ('number', '3', "number is '3'"),
            ('number', -1, 'number is -1'),
            ('module_ids', [1, None], 'module_ids[1] is None'),
            ('module_ids', [], 'module_ids has no GPUs'),
            ('instance_uuid', [], 'instance_uuid is []'),
            ('handles', None, 'handles is None, not a list'),
            ('functions', ['x'], 'functions[0] is wrong'),
        ):
            error = self.assertRaises(
                ValueError,
                fabric.PartitionEntry.from_dict,
                {**good, name: wrong},
            )
            self.assertIn(fault, str(error))

    def test_a_restarted_manager_hears_of_damaged_entries(self):
        self.assertEqual(
            (2, 5), fabric.partitions_to_restore([], (), frozenset({5, 2}))
        )
