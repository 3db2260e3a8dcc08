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

import pathlib
import types

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import role_changes

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
ACTIVE, OLD, INCOMING = (
    arq_types.Role.ACTIVE,
    arq_types.Role.OLD,
    arq_types.Role.INCOMING,
)
HELD = attach_journal.AttachStep.HELD


PROVIDER = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'


def arq_uuid(number):
    return f'f4ad4b4e-4aeb-4a6a-8a2f-{number:012x}'


def an_arq(number):
    return arq_types.Arq(
        arq_uuid(number),
        arq_types.State.BOUND,
        'profile',
        0,
        {},
        PROVIDER,
        attach_handle.AttachHandle(
            f'b9d6d3b8-27a8-4bd9-96a1-{number:012x}',
            pci_address.PciAddress(0, 0x81, 0, number),
        ),
    )


class Api:
    """Remembers what it is told; may be away."""

    away = False

    def __init__(self):
        self.told = []

    def move(self, instance_uuid, source, target, attempt, arq_uuids):
        if self.away:
            raise exceptions.ServiceUnavailable('away')
        self.told.append((source, target, attempt, list(arq_uuids)))


class Killed(BaseException):
    """The process is gone."""


class TestRoleChanges(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.api = Api()
        self.unplugged = []
        self.stuck = False
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.restart()

    def restart(self):
        self.journal = attach_journal.AttachJournal(self.directory)
        self.moves = role_changes.RoleChanges(
            self.journal,
            self.api,
            types.SimpleNamespace(unplug_all=self.unplug),
        )

    def unplug(self, arqs):
        arqs = list(arqs)
        if arqs and self.stuck:
            raise exceptions.DeviceError('stuck')
        self.unplugged += arqs

    def write(self, role, *numbers, attempt=1, step=HELD):
        self.journal.write(
            attach_journal.AttachEntry(
                INSTANCE, role, attempt, step, tuple(map(an_arq, numbers))
            )
        )

    def held(self):
        """Role -> ARQs, as the next nova-compute will read it."""
        return {
            entry.role: list(entry.arqs)
            for entry in attach_journal.AttachJournal(self.directory).entries()
        }

    def set_aside(self):
        self.moves.move(INSTANCE, ACTIVE, OLD)

    def test_what_the_disk_keeps_is_removed_the_next_time(self):
        """Else the end of the old role would unplug what is active."""
        self.write(ACTIVE, 1)
        remove = self.journal.remove

        def refuse(_entry):
            raise exceptions.DiskError('I/O error')

        self.journal.remove = refuse
        self.moves.move(INSTANCE, ACTIVE, OLD)
        self.assertEqual([], self.api.told)
        self.assertIsNotNone(self.journal.read(INSTANCE, ACTIVE))
        # Nor does it keep nova-compute from starting.
        self.moves.finish_interrupted()
        self.journal.remove = remove
        self.moves.report(INSTANCE)
        self.assertEqual([(ACTIVE, OLD)], [told[:2] for told in self.api.told])
        self.assertEqual(
            [OLD], [entry.role for entry in self.journal.entries()]
        )

    def test_killed_in_the_second_move_before_the_api_heard_of_one(self):
        self.write(ACTIVE, 1)
        self.api.away = True
        self.moves.move(INSTANCE, ACTIVE, OLD)
        remove = self.journal.remove

        def die(_entry):
            raise Killed

        self.journal.remove = die
        self.assertRaises(Killed, self.moves.move, INSTANCE, OLD, INCOMING)
        self.journal.remove = remove
        self.restart()
        self.moves.finish_interrupted()
        self.assertEqual(
            [INCOMING], [entry.role for entry in self.journal.entries()]
        )

    def test_the_journal_and_the_api_know_it(self):
        self.write(ACTIVE, 1, 2)
        self.set_aside()
        self.assertEqual({OLD: [an_arq(1), an_arq(2)]}, self.held())
        ((source, target, attempt, uuids),) = self.api.told
        self.assertEqual(
            (ACTIVE, OLD, [arq_uuid(1), arq_uuid(2)]), (source, target, uuids)
        )
        self.assertGreater(attempt, 1)
        self.moves.report(INSTANCE)
        self.assertEqual(1, len(self.api.told))

    def test_there_is_nothing_to_move(self):
        self.set_aside()
        self.write(ACTIVE, 1, step=attach_journal.AttachStep.RELEASING)
        self.set_aside()
        self.assertEqual({ACTIVE: [an_arq(1)]}, self.held())
        self.assertEqual([], self.api.told)

    def test_again_and_back(self):
        self.write(ACTIVE, 1)
        self.set_aside()
        self.set_aside()
        self.moves.move(INSTANCE, OLD, ACTIVE)
        self.assertEqual({ACTIVE: [an_arq(1)]}, self.held())
        self.assertEqual(
            [OLD, ACTIVE], [target for _, target, _, _ in self.api.told]
        )
        first, second = (attempt for _, _, attempt, _ in self.api.told)
        self.assertGreater(second, first)

    def test_the_api_is_told_later(self):
        self.api.away = True
        self.write(ACTIVE, 1)
        self.set_aside()
        self.assertEqual({OLD: [an_arq(1)]}, self.held())
        self.assertRaises(
            exceptions.ServiceUnavailable, self.moves.report, INSTANCE
        )
        self.restart()
        self.api.away = False
        self.moves.report(INSTANCE)
        self.moves.report(INSTANCE)
        self.assertEqual(
            [(ACTIVE, OLD)],
            [(source, target) for source, target, _, _ in self.api.told],
        )

    def test_the_api_hears_of_the_first_of_two_moves_with_the_second(self):
        self.api.away = True
        self.write(INCOMING, 1)
        self.moves.move(INSTANCE, INCOMING, ACTIVE)
        self.set_aside()
        self.assertEqual({OLD: [an_arq(1)]}, self.held())
        self.api.away = False
        self.moves.report(INSTANCE)
        self.assertEqual(
            [(INCOMING, OLD)],
            [(source, target) for source, target, _, _ in self.api.told],
        )

    def test_what_it_replaces_is_unplugged_first(self):
        self.write(OLD, 1, 2)
        self.write(ACTIVE, 2, 3, attempt=2)
        self.stuck = True
        before = self.held()
        self.assertRaises(exceptions.DeviceError, self.set_aside)
        self.assertEqual(before, self.held())
        self.stuck = False
        self.set_aside()
        self.assertEqual([an_arq(1)], self.unplugged)
        self.assertEqual({OLD: [an_arq(2), an_arq(3)]}, self.held())

    def test_a_process_that_dies_between_the_two_files(self):
        self.write(ACTIVE, 1)

        def die(_entry):
            raise Killed

        self.journal.remove = die
        self.assertRaises(Killed, self.set_aside)
        self.assertEqual({ACTIVE: [an_arq(1)], OLD: [an_arq(1)]}, self.held())
        self.restart()
        self.moves.finish_interrupted()
        self.assertEqual({OLD: [an_arq(1)]}, self.held())

    def test_a_newer_binding_is_not_left_behind(self):
        self.api.away = True
        self.write(ACTIVE, 1)
        self.set_aside()
        (old,) = self.journal.entries()
        self.write(ACTIVE, 2, attempt=old.attempt + 1)
        self.restart()
        self.moves.finish_interrupted()
        self.assertEqual({OLD: [an_arq(1)], ACTIVE: [an_arq(2)]}, self.held())
