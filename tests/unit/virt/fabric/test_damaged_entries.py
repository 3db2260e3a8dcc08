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

from nova_accel import exceptions
from unit.virt.fabric import board


class TestDamagedEntries(board.BoardTestCase):
    """The host learns from what instances hold whose a partition is."""

    def damage(self, number=3):
        path = self.directory / f'partition-{number}.json'
        path.write_text('{"number": [')
        self.start()

    def test_its_guest_runs(self):
        self.boot(board.I1, 1, 3)
        self.need.of_instances[board.I1] = (1, 3)
        before = self.journal.entries()
        self.damage()
        self.assertEqual([], self.journal.entries())
        self.fabric.repair()
        self.assertEqual(before, self.journal.entries())
        self.assertEqual([3], self.active)
        self.stop(board.I1)
        self.assertEqual([], self.active)

    def test_another_guest_gets_its_gpus(self):
        """The one that had them is gone."""
        self.boot(board.I1, 1, 3)
        self.damage()
        self.boot(board.I2, 1, 2, 3, 4)
        self.assertEqual([1], self.active)
        self.assertEqual({1: (board.I2, 'active')}, self.journaled)

    def test_a_guest_may_have_its_gpus(self):
        self.boot(board.I1, 1, 3)
        self.damage()
        self.need.unsure = True
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertEqual({3}, self.journal.damaged_numbers())
        self.boot(board.I2, 2)
        self.assertRaises(exceptions.Conflict, self.boot, board.I2, 1, 2, 3, 4)

    def test_it_is_not_active(self):
        self.damage()
        self.fabric.repair()
        self.assertEqual([], self.journal.damaged())

    def test_fabric_manager_was_restarted_meanwhile(self):
        self.boot(board.I1, 1, 3)
        self.need.of_instances[board.I1] = (1, 3)
        self.damage()
        self.daemon.restart()
        self.fabric.repair()
        self.assertEqual([3], self.active)
        self.assertEqual({3: (board.I1, 'active')}, self.journaled)
