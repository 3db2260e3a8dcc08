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

from typing import Any

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import bitstream_demand
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.rows import demand_rows
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

A, B = (uuidutils.generate_uuid() for _ in 'AB')


def asking(bitstream_id: str) -> dict[str, str]:
    return {**base.FPGA, 'accel:bitstream_id': bitstream_id}


class DemandTestCase(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(8,))
        self.host.report()
        self.used = 0

    def acquire(self, *groups: dict[str, str]) -> host_arqs.AcquireRequest:
        request = self.request(
            *(
                self.host.allocated(0, self.used + number)
                for number in range(len(groups))
            ),
            device_profile_name='',
            groups=groups,
        )
        self.used += len(groups)
        host_arqs.acquire(request)
        return request

    def age(self, seconds: int) -> None:
        """As if so much time had passed."""
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.BITSTREAM_DEMAND).values(
                    counted_at=clock.ago(seconds)
                )
            )

    def demand(self) -> dict[str, float]:
        return {
            name: round(weight, 2)
            for name, weight in bitstream_demand.read().items()
        }


class TestCount(DemandTestCase):
    def test_each_unit_that_is_bound_counts(self) -> None:
        self.assertEqual({}, self.demand())
        self.acquire(asking(A))
        self.acquire(asking(A), asking(B))
        self.assertEqual({A: 2.0, B: 1.0}, self.demand())

    def test_of_novas_cyborg_client_too(self) -> None:
        self.make_profile(asking(A))
        [arq] = self.make_arqs(1)
        self.assertEqual({}, self.demand())
        client_arqs.bind({arq: self.place()})
        self.assertEqual({A: 1.0}, self.demand())

    def test_what_could_not_be_bound_does_not_count(self) -> None:
        self.make_profile(asking(A))
        arqs = self.make_arqs(2)
        for arq in arqs:
            client_arqs.bind({arq: self.place()})
        self.assertEqual(1, len(self.taken()))
        self.assertEqual({A: 1.0}, self.demand())

    def test_the_same_again_does_not_count(self) -> None:
        request = self.acquire(asking(A))
        host_arqs.acquire(request)
        self.assertEqual({A: 1.0}, self.demand())

    def test_a_clock_that_is_set_back(self) -> None:
        self.acquire(asking(A))
        self.age(-86400)
        self.acquire(asking(A))
        self.assertEqual({A: 2.0}, self.demand())

    def test_the_table_has_an_end(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch(f'{demand_rows.__name__}.MAX_KNOWN', 2)
        )
        for wanted in (A, B, uuidutils.generate_uuid()):
            self.age(60)
            self.acquire(asking(wanted))
        self.assertEqual(2, len(self.rows(schema.BITSTREAM_DEMAND)))
        self.assertIn(wanted, self.demand())

    def test_at_the_same_time(self) -> None:
        def bind(number: int) -> Any:
            return lambda: host_arqs.acquire(
                self.request(
                    self.host.allocated(0, number),
                    device_profile_name='',
                    groups=[asking(A)],
                )
            )

        found = base.race([bind(number) for number in range(base.RACERS)])
        self.assertEqual(
            [], [each for each in found if isinstance(each, Exception)]
        )
        self.assertEqual({A: float(base.RACERS)}, self.demand())


class TestNumberOfStatements(DemandTestCase):
    def count(self, *groups: dict[str, str]) -> int:
        return len(self.statements(lambda: self.acquire(*groups)))

    def test_a_bitstream_costs_two(self) -> None:
        without = self.count(base.FPGA)
        self.acquire(asking(A))
        self.assertEqual(without + 2, self.count(asking(A)))
        self.assertEqual(1, len(self.statements(bitstream_demand.read)))

    def test_many_cost_no_more(self) -> None:
        new = self.count(asking(A)), self.count(asking(B))
        self.assertEqual(new[0], new[1])
        self.assertEqual(
            self.count(base.FPGA, base.FPGA) + 2,
            self.count(asking(A), asking(B)),
        )
