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

import fixtures
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import fleet
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import fleet_sources
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
            [fleet_sources.FleetHost('compute-1', 'compute-1.service', False)],
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
            fleet_sources.FleetArq(
                bound['uuid'],
                'Bound',
                'active',
                'compute-1',
                request.instance_uuid,
                'FPGA',
                base.PROJECT,
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


class TestPage(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.make_profile()
        # In the order of a binary collation.
        for name in ('B', 'a', 'c'):
            reports.SimulatedHost(name, (2,)).report()

    def read(self, *arguments: Any, **more: Any) -> fleet.FleetPage:
        return fleet.read_page(SILENCE_S, *arguments, **more)

    def names(self, page: fleet.FleetPage) -> list[str]:
        return [host.name for host in page.ours.hosts]

    def walk(self, limit: int) -> list[fleet.FleetPage]:
        """All pages."""
        pages = [self.read(limit)]
        while pages[-1].last is not None:
            pages.append(self.read(limit, pages[-1].last))
        return pages

    def lose_unit(self, hostname: str) -> None:
        """A server of the host has an ARQ without a unit.

        It is bound to another name that no host has, if the host is none.
        """
        host = reports.SimulatedHost('a', (2,))
        (arq,) = host_arqs.acquire(
            self.request(host.allocated(), hostname='a')
        )
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(arq_uuid=None)
            )
            connection.execute(
                sa.update(schema.ARQS)
                .where(schema.ARQS.c.uuid == arq['uuid'])
                .values(hostname=hostname)
            )

    def find_something(self, hostname: str) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.insert(schema.FINDINGS).values(
                    hostname=hostname,
                    found_at=schema.now(),
                    kind='mdev',
                    words='it is gone',
                    is_repaired=False,
                )
            )

    def test_all_pages_are_the_whole(self) -> None:
        for hostname in ('c', 'A', 'b', 'z'):
            self.lose_unit(hostname)
        host = reports.SimulatedHost('a', (2,))
        host_arqs.acquire(self.request(host.allocated(), hostname='a'))
        for hostname in ('a', 'c'):
            self.find_something(hostname)
        whole = fleet.read(SILENCE_S)
        self.assertEqual(4, len(whole.unheld))
        self.assertEqual(2, len(whole.findings))
        for limit in (1, 2, 3, 4):
            found = [page.ours for page in self.walk(limit)]
            for field in range(len(whole)):
                self.assertEqual(
                    sorted(whole[field], key=repr),
                    sorted(
                        (each for ours in found for each in ours[field]),
                        key=repr,
                    ),
                )

    def test_the_order(self) -> None:
        names = [name for page in self.walk(1) for name in self.names(page)]
        self.assertEqual({'B', 'a', 'c'}, {*names})
        self.assertEqual(3, len(names))
        self.assertEqual(names, self.names(self.read(3)))
        self.assertIsNone(self.read(4).last)

    def test_one_host(self) -> None:
        for hostname in ('a', 'c'):
            self.lose_unit(hostname)
        found = self.read(100, hostname='a').ours
        self.assertEqual(['a'], [host.name for host in found.hosts])
        self.assertEqual({'a'}, {each.hostname for each in found.devices})
        self.assertEqual(2, len(found.units))
        self.assertEqual(['a'], [arq.hostname for arq in found.unheld])
        # It has never reported, and something is bound to it.
        [lost] = self.read(100, hostname='c').ours.unheld
        self.assertEqual('c', lost.hostname)
        error = self.assertRaises(
            exceptions.NotFound, self.read, 100, hostname='nowhere'
        )
        self.assertIn('Host nowhere not found', str(error))

    def test_a_page_is_bounded(self) -> None:
        names = self.names(self.read(3))
        for most, expected in ((1, 1), (2, 1), (4, 2), (6, 3)):
            self.useFixture(
                fixtures.MonkeyPatch('nova_accel.db.fleet.MAX_ON_A_PAGE', most)
            )
            page = self.read(3)
            self.assertEqual(names[:expected], self.names(page))
            self.assertEqual(names[expected - 1], page.last)
            pages = self.walk(3)
            self.assertEqual(
                names, [name for page in pages for name in self.names(page)]
            )

    def test_bare_arqs_count(self) -> None:
        self.lose_unit('a')
        names = self.names(self.read(3))
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.fleet.MAX_ON_A_PAGE', 6)
        )
        self.assertEqual(names[:2], self.names(self.read(3)))

    def test_statements_do_not_depend_on_the_size(self) -> None:
        few = self.statements(lambda: self.read(100))
        for number in range(2, 6):
            self.make_noise(reports.SimulatedHost(f'compute-{number}', (3,)))
        self.assertEqual(5, len(few))
        # They name the hosts.
        self.assertEqual(5, len(self.statements(lambda: self.read(100))))
