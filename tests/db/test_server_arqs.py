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
import datetime
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import draining
from nova_accel.db import host_arqs
from nova_accel.db import lease
from nova_accel.db import server_arqs
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model.units import unit_health
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

_BEGIN = datetime.datetime(2120, 11, 23, 6, tzinfo=datetime.UTC)
_END = datetime.datetime(2120, 11, 24, 6, tzinfo=datetime.UTC)


class ServerTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2))
        self.host.report()
        self.make_profile()

    def acquire(self, **fields: Any) -> host_arqs.AcquireRequest:
        request = self.request(**fields)
        host_arqs.acquire(request)
        return request

    def report(self, **fields: Any) -> None:
        dataclasses.replace(self.host, **fields).report()


class TestGet(ServerTestCase):
    scenarios = database.SCENARIOS

    def silence(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(3600))
            )

    def health(self, instance_uuid: str) -> tuple[str, str | None, bool]:
        """The health, the reason, and whether it is known since when."""
        [arq] = server_arqs.get(instance_uuid)
        health, reason = arq['health']
        return str(health), reason, arq['since'] is not None

    def test_what_a_server_has(self) -> None:
        request = self.acquire()
        self.acquire(allocations=(self.host.allocated(1),))
        [held] = host_arqs.get(*request.key)
        self.assertEqual(
            [
                {
                    'uuid': held['uuid'],
                    'project_id': base.PROJECT,
                    'device_profile_name': 'fpga',
                    'device_profile_group_id': 0,
                    'resource_class': 'FPGA',
                    'state': 'Bound',
                    'is_leaving': False,
                    'health': unit_health.Verdict(unit_health.Health.HEALTHY),
                    'since': None,
                    'drain': None,
                }
            ],
            server_arqs.get(request.instance_uuid, base.PROJECT),
        )

    def test_by_one_statement(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        self.assertEqual(
            1, len(self.statements(lambda: server_arqs.get(instance_uuid)))
        )

    def test_of_no_one_else(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        for arguments in (
            (instance_uuid, 'c' * 32),
            (uuidutils.generate_uuid(),),
        ):
            self.assertRaises(exceptions.NotFound, server_arqs.get, *arguments)

    def test_its_health(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        self.assertEqual(('healthy', None, False), self.health(instance_uuid))
        self.report(faults=((1, 'another device'),))
        self.assertEqual(('healthy', None, False), self.health(instance_uuid))
        self.report(faults=((0, '0000:00:00.0 fell off the bus'),))
        self.assertEqual(
            ('failed', 'the device does not work', True),
            self.health(instance_uuid),
        )
        self.report()
        self.report(regions=(None, 2))
        self.assertEqual(
            ('failed', 'the device is no longer there', False),
            self.health(instance_uuid),
        )
        self.silence()
        self.assertEqual(
            ('unknown', 'the host of the server does not report', True),
            self.health(instance_uuid),
        )
        [arq] = server_arqs.get(instance_uuid)
        self.assertEqual('Unknown', arq['state'])

    def test_its_device_is_being_replaced(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        for faults, health in (
            ((), 'healthy'),
            (((0, 'it fell off the bus'),), 'being replaced'),
        ):
            self.report(faults=faults)
            with lease.alone(f'changing {instance_uuid}', 60, Exception()):
                self.assertEqual(health, self.health(instance_uuid)[0])
        self.assertEqual('failed', self.health(instance_uuid)[0])

    def test_the_health_of_arqs(self) -> None:
        """Of any server, by one statement."""
        requests = [
            self.acquire(allocations=(self.host.allocated(*where),))
            for where in ((0,), (1, 0), (1, 1))
        ]
        self.report(faults=((1, 'hot'),))
        [works, fails, changed] = [
            host_arqs.get(*request.key)[0]['uuid'] for request in requests
        ]
        [unbound] = self.make_arqs(1)
        found = {}

        def read() -> None:
            for uuid, row in server_arqs.get_health(
                [works, fails, changed, unbound]
            ).items():
                self.assertEqual(uuid, row['uuid'])
                found[uuid] = row['health'].health, row['since'] is not None

        with lease.alone(
            f'changing {requests[2].instance_uuid}', 60, Exception()
        ):
            self.assertEqual(1, len(self.statements(read)))
        self.assertEqual(
            {
                works: ('healthy', False),
                fails: ('failed', True),
                changed: ('being replaced', True),
            },
            found,
        )
        self.assertEqual(
            [], self.statements(lambda: server_arqs.get_health([]))
        )

    def test_a_disabled_device_works(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        draining.begin(self.host.hostname, 'fans', _END, 'admin')
        [drain] = draining.get_all()
        [arq] = server_arqs.get(instance_uuid)
        self.assertEqual('healthy', arq['health'].health)
        self.assertEqual(
            {'begin': drain['requested_at'], 'until': _END, 'reason': 'fans'},
            arq['drain'],
        )

    def test_a_drain_that_is_announced(self) -> None:
        instance_uuid = self.acquire().instance_uuid
        draining.begin(self.host.hostname, 'fans', _END, 'admin', _BEGIN)
        [arq] = server_arqs.get(instance_uuid)
        self.assertEqual(
            {'begin': _BEGIN, 'until': _END, 'reason': 'fans'}, arq['drain']
        )

    def test_of_moves_only_what_the_guest_has(self) -> None:
        instance_uuid = uuidutils.generate_uuid()
        for role, region in (('old', 0), ('incoming', 1)):
            self.acquire(
                role=role,
                instance_uuid=instance_uuid,
                allocations=(self.host.allocated(1, region),),
            )
        self.assertRaises(exceptions.NotFound, server_arqs.get, instance_uuid)
        self.acquire(instance_uuid=instance_uuid)
        self.assertEqual(1, len(server_arqs.get(instance_uuid)))

    def test_what_nova_has_bound_itself(self) -> None:
        (bound, failed) = self.make_arqs(2)
        place = self.place()
        client_arqs.bind({bound: place})
        client_arqs.bind({failed: self.place()})
        [arq] = server_arqs.get(place['instance_uuid'])
        self.assertEqual(bound, arq['uuid'])


class TestHeld(ServerTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.request_ = self.acquire()
        [held] = host_arqs.get(*self.request_.key)
        self.arq = held['uuid']

    def held(self, project_id: str | None = None) -> list[tuple[str, bool]]:
        return [
            (row['uuid'], row['has_failed'])
            for row in server_arqs.get_held(
                self.request_.instance_uuid, project_id
            )
        ]

    def test_which_have_failed(self) -> None:
        uuid = self.arq
        self.assertEqual([(uuid, False)], self.held())
        self.report(faults=((0, 'dead'),))
        self.assertEqual([(uuid, True)], self.held())
        self.report()
        self.assertEqual([(uuid, False)], self.held())
        self.report(regions=(None, 2))
        self.assertEqual([(uuid, True)], self.held())

    def test_only_of_the_project(self) -> None:
        self.assertEqual(1, len(self.held(base.PROJECT)))
        self.assertEqual([], self.held('c' * 32))

    def test_only_active_ones(self) -> None:
        adoption.adopt(
            (*self.request_.key[:2], 'old'), 2, [self.arq], 'active'
        )
        self.assertEqual([], self.held())

    def test_the_host(self) -> None:
        [row] = server_arqs.get_held(self.request_.instance_uuid)
        self.assertEqual(
            (self.host.hostname, self.host.service_host, self.host.contract),
            (row['hostname'], row['service_host'], row['contract']),
        )
        self.assertIs(False, row['is_silent'])

    def test_one_statement(self) -> None:
        self.assertEqual(1, len(self.statements(self.held)))


class TestSince(base.DatabaseTestCase):
    """By the database's clock, when the first report had a fault."""

    scenarios = database.SCENARIOS

    def faulted_at(self, fault: str | None) -> datetime.datetime | None:
        dataclasses.replace(
            self.host, faults=((0, fault),) if fault else ()
        ).report()
        [device] = self.rows(schema.DEVICES)
        found: datetime.datetime | None = device['faulted_at']
        return found

    def test_it_stays_until_the_fault_goes(self) -> None:
        self.assertIsNone(self.faulted_at(None))
        self.assertIsNotNone(self.faulted_at('hot'))
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.DEVICES).values(faulted_at=clock.ago(60))
            )
        [device] = self.rows(schema.DEVICES)
        self.assertEqual(device['faulted_at'], self.faulted_at('hotter'))
        self.assertIsNone(self.faulted_at(None))

    def test_a_new_device(self) -> None:
        self.assertIsNotNone(self.faulted_at('hot'))

    def test_only_a_change_costs_statements(self) -> None:
        """One notes it, and one reads whom it concerns."""
        self.faulted_at('hot')
        same = self.statements(lambda: self.faulted_at('hotter'))
        other = self.statements(lambda: self.faulted_at(None))
        self.assertEqual(len(same) + 2, len(other))
