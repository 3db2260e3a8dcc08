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

"""tests/functional/test_boards.py has real boards in a real Placement."""

import random

import testtools

from rig.benchmark import board_boots


class RefusingCloud:
    """Its boards are free, and no server gets one."""

    servers = {}

    def profile(self, name, *groups):
        pass

    def has_whole(self, size):
        return True

    def is_refused(self, profile):
        return True


class TestRun(testtools.TestCase):
    def test_it_ends_if_nothing_boots_any_more(self):
        boots = board_boots.Boots(RefusingCloud(), (2, 4), random.Random(18))
        told = []
        boots.run(3, told.append)
        self.assertEqual([1, 2, 3], told)
        self.assertEqual(board_boots.Tally(refused_wrongly=3), boots.tally)
