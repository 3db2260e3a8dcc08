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
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import deployable
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import host_contract
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class DeployableTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2,))
        self.host.report()
        self.make_profile()

    def found(self) -> dict[str, dict[str, Any]]:
        return {row['name']: row for row in deployable.get_all()}


class TestGet(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_all_that_is_known(self) -> None:
        [device] = self.rows(schema.DEVICES)
        row = self.found()['region0']
        self.assertEqual(row, deployable.get(row['uuid']))
        [stored] = [
            row
            for row in self.rows(schema.DEPLOYABLES)
            if row['name'] == 'region0'
        ]
        self.assertEqual('region0', stored['region'])
        self.assertEqual(
            {
                **stored,
                'hostname': 'compute-1',
                'service_host': 'compute-1.service',
                'contract': host_contract.NEWEST,
                'is_silent': False,
                'driver': 'fake',
                'device_id': device['id'],
                'created_at': device['created_at'],
                'updated_at': device['updated_at'],
                'units': 1,
                'units_in_use': 0,
                'noted': {},
            },
            row,
        )

    def test_unknown(self) -> None:
        uuid = uuidutils.generate_uuid()
        error = self.assertRaises(exceptions.NotFound, deployable.get, uuid)
        self.assertEqual(f'Deployable not found with uuid={uuid}', str(error))

    def test_what_guests_have(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        self.assertEqual(
            {'region0': 1, 'region1': 0},
            {name: row['units_in_use'] for name, row in self.found().items()},
        )
        # What its host reports no more is a guest's all the same.
        reports.SimulatedHost(regions=(None,)).report()
        row = self.found()['region0']
        self.assertEqual((0, 1), (row['units'], row['units_in_use']))

    def test_of_a_silent_host(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                schema.HOSTS.update().values(
                    reported_at=schema.now() - datetime.timedelta(hours=1)
                )
            )
        self.assertTrue(self.found()['region0']['is_silent'])
        self.assertEqual(
            [True],
            [host['is_silent'] for host in deployable.get_hosts_of_regions()],
        )

    def test_filters(self) -> None:
        other = reports.SimulatedHost('compute-2')
        other.report()
        bitstream = uuidutils.generate_uuid()
        with self.database.engine.begin() as connection:
            connection.execute(
                schema.DEPLOYABLES.update()
                .where(schema.DEPLOYABLES.c.name == 'region1')
                .values(bitstream_id=bitstream)
            )
        for filters, amount in (
            ({'hostname': 'compute-1'}, 2),
            ({'hostname': 'compute-2'}, 1),
            ({'hostname': 'compute-3'}, 0),
            ({'device_uuid': other.device_uuid()}, 1),
            ({'bitstream_id': bitstream}, 1),
            ({'bitstream_id': bitstream, 'hostname': 'compute-2'}, 0),
            ({}, 3),
        ):
            self.assertEqual(
                amount, len(deployable.get_all(**filters)), filters
            )


class TestGetOfArq(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_that_which_it_has_something_of(self) -> None:
        request = self.request()
        [arq] = host_arqs.acquire(request)
        for project in (None, base.PROJECT):
            self.assertEqual(
                self.found()['region0'],
                deployable.get_of_arq(arq['uuid'], project),
            )
        self.assertRaises(
            exceptions.NotFound, deployable.get_of_arq, arq['uuid'], 'another'
        )

    def test_one_that_is_not_bound(self) -> None:
        [arq] = self.make_arqs(1)
        for uuid in (arq, uuidutils.generate_uuid()):
            error = self.assertRaises(
                exceptions.NotFound, deployable.get_of_arq, uuid
            )
            self.assertEqual(
                f'Deployable not found with uuid={uuid}', str(error)
            )


class TestGetHolders(DeployableTestCase):
    scenarios = database.SCENARIOS

    def holders(self, region: str) -> set[tuple[str | None, str | None]]:
        return deployable.get_holders(self.host.device_uuid(), region)

    def test_of_this_region_alone(self) -> None:
        self.assertEqual(set(), self.holders('region0'))
        request = self.request()
        host_arqs.acquire(request)
        self.assertEqual(
            {(base.PROJECT, request.instance_uuid)}, self.holders('region0')
        )
        self.assertEqual(set(), self.holders('region1'))
        self.assertEqual(self.holders('region0'), self.holders(None))
        host_arqs.release(*request.key, 1)
        self.assertEqual(set(), self.holders('region0'))

    def test_what_nova_has_bound(self) -> None:
        [arq] = self.make_arqs(1)
        place = self.place()
        client_arqs.bind({arq: place})
        self.assertEqual(
            {(base.PROJECT, place['instance_uuid'])}, self.holders('region0')
        )


class TestGetTraits(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_of_all_hosts(self) -> None:
        reports.SimulatedHost('compute-2', regions=(1,)).report()
        found = deployable.get_traits(['FPGA', 'CUSTOM_QAT', 'VGPU'])
        self.assertEqual({'FPGA'}, {*found} - {'CUSTOM_QAT'})
        self.assertLessEqual({'CUSTOM_REGION0'}, found['FPGA'])
        self.assertEqual({}, deployable.get_traits([]))


class TestGetClassSets(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_of_each_provider(self) -> None:
        reports.SimulatedHost('compute-2', regions=(1,)).report()
        self.assertEqual(
            {frozenset({'FPGA'})},
            deployable.get_class_sets(['FPGA', 'CUSTOM_QAT', 'VGPU'])
            - {frozenset({'CUSTOM_QAT'})},
        )
        self.assertEqual(set(), deployable.get_class_sets(['PGPU']))


class TestGetLinkSets(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_of_these_classes(self) -> None:
        self.assertEqual(set(), deployable.get_link_sets(['FPGA']))
        places = [['numa0 numa=2-8', 'board nvlink=2'], ['numa1 numa=2-8']]
        with engine.writer() as connection:
            devices = connection.scalars(sa.select(schema.DEVICES.c.uuid))
            for uuid, of_device in zip(devices.all(), places, strict=False):
                connection.execute(
                    sa.update(schema.DEVICES)
                    .where(schema.DEVICES.c.uuid == uuid)
                    .values(link_sets=of_device)
                )
        found = deployable.get_link_sets(['FPGA'])
        self.assertLess(set(), found)
        self.assertLessEqual(found, {*places[0], *places[1]})
        self.assertEqual(set(), deployable.get_link_sets(['PGPU']))


class TestGetHostsOfRegions(DeployableTestCase):
    scenarios = database.SCENARIOS

    def test_those_with_regions(self) -> None:
        reports.SimulatedHost('compute-0', regions=(), functions=2).report()
        self.assertEqual(
            [
                {
                    'hostname': 'compute-1',
                    'service_host': 'compute-1.service',
                    'contract': host_contract.NEWEST,
                    'is_silent': False,
                }
            ],
            deployable.get_hosts_of_regions(),
        )
