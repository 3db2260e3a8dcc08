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


import datetime

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import engine
from nova_accel.db import fleet
from nova_accel.db import host_arqs
from nova_accel.db import schema
from nova_accel.model import fleet_sources
from nova_accel.model import hardware
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

SILENCE_S = 300


class TestRead(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(
            regions=(2, 1), functions=2, faults=((1, 'hot'),)
        )
        self.host.report()
        self.make_profile()

    def read(self) -> fleet_sources.Ours:
        return fleet.read(SILENCE_S)

    def test_all_of_an_idle_host(self) -> None:
        found = self.read()
        self.assertEqual(
            [fleet_sources.Host('compute-1', 'compute-1.service', False)],
            list(found.hosts),
        )
        self.assertEqual(
            ['Intel C62x', 'Intel C62x', 'Intel PAC', 'Intel PAC'],
            sorted(found.product for found in found.devices),
        )
        self.assertEqual(
            [
                ('CUSTOM_QAT', 'qat', '0001:00:00.0'),
                ('CUSTOM_QAT', 'qat', '0001:00:01.0'),
                ('FPGA', 'region0', '0000:00:01.0'),
                ('FPGA', 'region0', '0000:01:01.0'),
                ('FPGA', 'region1', '0000:00:01.1'),
            ],
            sorted(
                (unit.resource_class, unit.part, unit.address)
                for unit in found.units
            ),
        )
        self.assertEqual([], list(found.unheld))
        self.assertEqual(set(), found.instance_uuids)

    def test_conditions(self) -> None:
        uuid = self.host.device_uuid()
        device.set_status(uuid, hardware.Status.MAINTAINING)
        conditions = {
            unit.device_uuid: unit.condition for unit in self.read().units
        }
        self.assertEqual('maintaining', conditions[uuid].status)
        faulty = conditions[self.host.device_uuid(1)]
        self.assertEqual('hot', faulty.fault)
        self.assertTrue(faulty.is_present)
        self.assertTrue(faulty.is_clean)

    def test_who_has_it(self) -> None:
        request = self.request(self.host.allocated())
        (bound,) = host_arqs.acquire(request)
        found = self.read()
        (unit,) = [unit for unit in found.units if unit.arq is not None]
        self.assertEqual(bound['attach_handle_uuid'], unit.uuid)
        self.assertEqual(self.host.rp_uuid(), unit.rp_uuid)
        self.assertEqual(
            fleet_sources.Arq(
                bound['uuid'],
                'Bound',
                'active',
                'compute-1',
                request.instance_uuid,
                'FPGA',
            ),
            unit.arq,
        )
        self.assertEqual({request.instance_uuid}, found.instance_uuids)

    def test_bound_without_a_unit(self) -> None:
        request = self.request(self.host.allocated())
        (bound,) = host_arqs.acquire(request)
        # One that is bound to nothing is not told.
        client_arqs.create('fpga', base.PROJECT)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(arq_uuid=None)
            )
        found = self.read()
        self.assertEqual([bound['uuid']], [arq.uuid for arq in found.unheld])
        self.assertEqual({request.instance_uuid}, found.instance_uuids)

    def test_a_unit_that_its_host_lost(self) -> None:
        host_arqs.acquire(self.request(self.host.allocated()))
        reports.SimulatedHost(regions=(None, 1)).report()
        (unit,) = [unit for unit in self.read().units if unit.arq is not None]
        self.assertFalse(unit.condition.is_present)

    def test_a_silent_host(self) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(
                    reported_at=schema.now() - datetime.timedelta(hours=1)
                )
            )
        self.assertTrue(self.read().hosts[0].is_silent)

    def test_statements_do_not_depend_on_the_size(self) -> None:
        few = self.statements(self.read)
        for number in range(2, 6):
            self.make_noise(reports.SimulatedHost(f'compute-{number}', (3,)))
        self.assertEqual(few, self.statements(self.read))
        self.assertEqual(5, len(few))
