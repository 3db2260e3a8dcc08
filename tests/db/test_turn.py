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

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import clock
from nova_accel.db import schema
from nova_accel.db import turn
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class TestTake(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def age(self, seconds: int) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.TURNS).values(taken_at=clock.ago(seconds))
            )

    def test_once_in_an_interval(self) -> None:
        self.assertEqual(
            [True, False], [turn.take('stock', 60) for _ in range(2)]
        )
        self.assertTrue(turn.take('other', 60))
        self.age(59)
        self.assertFalse(turn.take('stock', 62))
        self.age(60)
        self.assertTrue(turn.take('stock', 60))

    def test_a_clock_that_is_set_back(self) -> None:
        turn.take('stock', 60)
        self.age(-86400)
        self.assertTrue(turn.take('stock', 60))

    def test_one_of_many(self) -> None:
        for _round in range(3):
            won = base.race([lambda: turn.take('stock', 60)] * base.RACERS)
            self.assertEqual([False] * (base.RACERS - 1) + [True], sorted(won))
            self.age(60)

    def test_statements(self) -> None:
        for expected in (3, 2):
            self.assertEqual(
                expected,
                len(self.statements(lambda: turn.take('stock', 60))),
            )
