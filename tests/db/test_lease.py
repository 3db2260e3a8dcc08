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

import contextlib

import fixtures
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import lease
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios


class _TestCase(base.DatabaseTestCase):
    def age(self, seconds: int) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.LEASES).values(taken_at=clock.ago(seconds))
            )


class TestTake(_TestCase):
    scenarios = database.SCENARIOS

    def test_once_in_an_interval(self) -> None:
        self.assertEqual(
            [True, False], [lease.take('stock', 60) for _ in range(2)]
        )
        self.assertTrue(lease.take('other', 60))
        self.age(59)
        self.assertFalse(lease.take('stock', 62))
        self.age(60)
        self.assertTrue(lease.take('stock', 60))

    def test_a_clock_that_is_set_back(self) -> None:
        lease.take('stock', 60)
        self.age(-86400)
        self.assertTrue(lease.take('stock', 60))

    def test_one_of_many(self) -> None:
        for _round in range(3):
            won = base.race([lambda: lease.take('stock', 60)] * base.RACERS)
            self.assertEqual([False] * (base.RACERS - 1) + [True], sorted(won))
            self.age(60)

    def test_statements(self) -> None:
        for expected in (3, 2):
            self.assertEqual(
                expected,
                len(self.statements(lambda: lease.take('stock', 60))),
            )


class _Busy(Exception):
    pass


class TestAlone(_TestCase):
    scenarios = database.SCENARIOS

    def alone(self, name: str = 'region') -> contextlib.AbstractContextManager:
        return lease.alone(name, 60, _Busy())

    def is_free(self) -> bool:
        try:
            with self.alone():
                return True
        except _Busy:
            return False

    def test_until_the_body_ends(self) -> None:
        for _time in range(2):
            with self.alone():
                self.assertFalse(self.is_free())
                self.assertFalse(lease.take('region', 60))
                with self.alone('another'):
                    pass
            self.assertTrue(self.is_free())

    def test_until_the_body_fails(self) -> None:
        with contextlib.suppress(ZeroDivisionError), self.alone():
            1 / 0  # noqa: B018
        self.assertTrue(self.is_free())

    def test_a_process_that_was_killed(self) -> None:
        # It takes the lease, and never ends it.
        self.assertTrue(lease.take('region', 60))
        self.age(59)
        self.assertFalse(self.is_free())
        self.age(60)
        self.assertTrue(self.is_free())

    def test_a_late_end_is_not_that_of_another(self) -> None:
        late = self.alone()
        late.__enter__()
        self.age(60)
        self.assertTrue(lease.take('region', 60))
        # The test has no minute, so both would have begun in one second.
        self.age(5)
        late.__exit__(None, None, None)
        self.assertFalse(self.is_free())

    def test_a_database_that_is_away_at_the_end(self) -> None:
        """The body is done, so its caller is not told a fault."""
        with self.alone():
            self.useFixture(
                fixtures.MockPatchObject(
                    lease,
                    '_end',
                    side_effect=exceptions.ServiceUnavailable('away'),
                )
            )
        self.assertFalse(self.is_free())
        self.age(60)
        self.assertTrue(self.is_free())

    def test_one_of_many(self) -> None:
        for _round in range(3):
            holder = self.alone()
            entered = base.race(
                [holder.__enter__]
                + [self.alone().__enter__ for _racer in range(base.RACERS - 1)]
            )
            self.assertEqual(
                base.RACERS - 1,
                sum(isinstance(each, _Busy) for each in entered),
                entered,
            )
            self.age(60)

    def test_statements(self) -> None:
        held = self.alone()
        self.assertLessEqual(len(self.statements(held.__enter__)), 4)
        self.assertEqual(
            1, len(self.statements(lambda: held.__exit__(None, None, None)))
        )
        self.assertTrue(lease.take('region', 60))
        self.age(60)
        after_another = self.alone()
        self.assertEqual(2, len(self.statements(after_another.__enter__)))
        after_another.__exit__(None, None, None)
