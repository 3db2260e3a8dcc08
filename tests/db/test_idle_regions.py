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

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import device
from nova_accel.db import host_arqs
from nova_accel.db import idle_regions
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import host_contract
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import stocking
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

A = uuidutils.generate_uuid()


class RegionStockTestCase(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1))
        self.host.report()

    def update(self, table: sa.Table, **values: object) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(sa.update(table).values(**values))

    def idle(self) -> set[tuple[str, str]]:
        """(Device uuid, region) of each."""
        return {
            (region.device_uuid, region.name)
            for region in idle_regions.read_idle(180)
        }

    def region(self, bus: int = 0, number: int = 0) -> tuple[str, str]:
        return self.host.device_uuid(bus), f'region{number}'

    def found(self) -> stocking.StockedRegion:
        """The second card's region."""
        [found] = [
            region
            for region in idle_regions.read_idle(180)
            if region.device_uuid == self.host.device_uuid(1)
        ]
        return found

    def order(self) -> None:
        idle_regions.note([stocking.StockOrder(self.found(), A)])


class TestReadIdle(RegionStockTestCase):
    def test_a_region(self) -> None:
        [deployable] = [
            row
            for row in self.rows(schema.DEPLOYABLES)
            if row['device_uuid'] == self.host.device_uuid(1)
        ]
        self.assertEqual(
            stocking.StockedRegion(
                self.host.device_uuid(1),
                'region0',
                'compute-1',
                'compute-1.service',
                deployable['uuid'],
                'FPGA',
                frozenset({'CUSTOM_REGION0'}),
                contract=host_contract.NEWEST,
            ),
            dataclasses.replace(
                self.found(),
                traits=self.found().traits & {'CUSTOM_REGION0'},
            ),
        )

    def test_not_what_a_server_has(self) -> None:
        self.make_profile()
        request = self.request(self.host.allocated(0, 1))
        host_arqs.acquire(request)
        self.assertEqual({self.region(), self.region(1)}, self.idle())
        host_arqs.release(*request.key, 1)
        self.assertEqual(3, len(self.idle()))

    def test_a_region_of_two_deployables_is_one(self) -> None:
        self.update(schema.DEPLOYABLES, region='region0')
        self.assertEqual({self.region(), self.region(1)}, self.idle())
        self.make_profile()
        host_arqs.acquire(self.request(self.host.allocated(0, 1)))
        self.assertEqual({self.region(1)}, self.idle())

    def test_not_what_cannot_be_used(self) -> None:
        device.set_status(
            self.host.device_uuid(0), hardware.Status.MAINTAINING
        )
        self.assertEqual({self.region(1)}, self.idle())
        dataclasses.replace(self.host, faults=((1, 'hot'),)).report()
        self.assertEqual(set(), self.idle())

    def test_not_a_bad_region(self) -> None:
        self.update(
            schema.DEVICES, attributes={'fault of region0': 'CRC error'}
        )
        self.assertEqual({self.region(0, 1)}, self.idle())

    def test_not_what_is_unclean(self) -> None:
        cleaned = dataclasses.replace(self.host, cleaned=True)
        cleaned.report()
        self.assertEqual(set(), self.idle())
        self.assertEqual(
            {self.region(), self.region(0, 1), self.region(1)},
            {
                (region.device_uuid, region.name)
                for region in idle_regions.read_unclean('compute-1').values()
            },
        )
        self.assertEqual({}, idle_regions.read_unclean('compute-2'))
        cleaned.clean()
        self.assertEqual(3, len(self.idle()))
        self.assertEqual({}, idle_regions.read_unclean('compute-1'))

    def test_not_of_a_silent_host(self) -> None:
        self.update(schema.HOSTS, reported_at=clock.ago(181))
        self.assertEqual(set(), self.idle())

    def test_one_statement_however_many_there_are(self) -> None:
        reports.SimulatedHost('compute-2', (8,) * 25).report()
        self.assertEqual(
            1, len(self.statements(lambda: idle_regions.read_idle(180)))
        )
        self.assertEqual(203, len(idle_regions.read_idle(180)))
        self.assertEqual(
            1,
            len(
                self.statements(lambda: idle_regions.read_unclean('compute-2'))
            ),
        )


class TestNote(RegionStockTestCase):
    def test_an_order(self) -> None:
        self.assertIsNone(self.found().ordered)
        self.order()
        ordered = self.found().ordered
        assert ordered is not None
        self.assertEqual(A, ordered.bitstream_id)
        self.assertLess(ordered.age_s, 60)

    def test_one_that_is_fulfilled(self) -> None:
        self.order()
        self.update(schema.DEPLOYABLES, bitstream_id=A)
        self.assertIsNone(self.found().ordered)
        idle_regions.note(())
        self.assertEqual([], self.rows(schema.STOCK_ORDERS))

    def test_one_that_is_old(self) -> None:
        self.order()
        self.update(schema.STOCK_ORDERS, ordered_at=clock.ago(3599 - 30))
        idle_regions.note(())
        self.assertIsNotNone(self.found().ordered)
        self.update(schema.STOCK_ORDERS, ordered_at=clock.ago(3601))
        self.assertIsNone(self.found().ordered)
        self.order()
        self.assertEqual(1, len(self.rows(schema.STOCK_ORDERS)))

    def test_statements(self) -> None:
        orders = [
            stocking.StockOrder(region, A)
            for region in idle_regions.read_idle(180)
        ]
        self.assertEqual(
            [1, 3],
            [
                len(self.statements(lambda some=some: idle_regions.note(some)))
                for some in ((), orders)
            ],
        )
