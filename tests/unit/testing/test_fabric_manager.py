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

from nova_accel.privileged import fabric_manager as privileged
from nova_accel.testing import fabric_manager


class TestFabricManager(testtools.TestCase):
    def test_both_boards(self):
        for board, pairs in (
            (fabric_manager.H100, {(1, 3), (2, 4), (5, 7), (6, 8)}),
            (fabric_manager.B200, {(1, 2), (3, 4), (5, 6), (7, 8)}),
        ):
            self.assertEqual(15, len(board))
            for size, amount in ((8, 1), (4, 2), (2, 4), (1, 8)):
                sets = [each for each in board.values() if len(each) == size]
                self.assertEqual(amount, len(sets))
                # Those of one size share no GPU.
                self.assertEqual(8, len(set().union(*sets)))
            self.assertEqual(
                pairs, {each for each in board.values() if len(each) == 2}
            )

    def test_in_this_process_or_not(self):
        daemon = self.useFixture(fabric_manager.FabricManager())
        self.assertEqual((0, ''), daemon.ask('-a', '3'))
        self.assertEqual(249, daemon.ask('-a', '3')[0])
        self.assertEqual(249, privileged.activate(3, [], 30)[0])
        self.assertEqual(privileged.partitions(30), daemon.ask('-l'))
        self.assertEqual({3: (1, 3)}, daemon.active)
        daemon.activate(4)
        self.assertEqual([3, 4], sorted(daemon.active))
        self.assertEqual([['-a', '3']] * 3 + [['-l']] * 2, daemon.calls)
