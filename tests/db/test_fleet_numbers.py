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

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import fleet
from nova_accel.db import fleet_numbers
from nova_accel.db import host_arqs
from nova_accel.db import programming
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import fleet_numbers as model
from nova_accel.model.fpga import programming_record
from nova_accel.model.units import failure_cause
from nova_accel.model.units import unit_state
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

SILENCE_S = 300
WINDOW_S = 3600
MOST = 1000

_State = unit_state.UnitState


class TestRead(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(
            regions=(4, 1), functions=2, faults=((1, 'hot'),)
        )
        self.host.report()
        self.make_profile()

    def read(self, most_bound: int = MOST) -> model.Numbers:
        return fleet_numbers.read(SILENCE_S, WINDOW_S, most_bound)

    def change(self, table: sa.Table, where: object = None, **to: object):
        query = sa.update(table).values(to)
        with engine.writer() as connection:
            connection.execute(query if where is None else query.where(where))

    def program(
        self,
        took_s: float | None,
        failure: str | None = None,
        age_s: float = 60,
    ) -> None:
        began = schema.now() - datetime.timedelta(seconds=age_s)
        programming.note(
            self.host.hostname,
            programming_record.Record(
                uuidutils.generate_uuid(),
                self.host.device_uuid(),
                'region0',
                uuidutils.generate_uuid(),
                programming_record.Asker(),
                began,
                None
                if took_s is None
                else began + datetime.timedelta(seconds=took_s),
                failure,
            ),
        )

    def test_nothing(self) -> None:
        with engine.writer() as connection:
            for table in reversed(schema.METADATA.sorted_tables):
                connection.execute(sa.delete(table))
        self.assertEqual(
            model.Numbers([], {}, 0, 0, {}, [], [], [], [], [], 0, [], {}),
            self.read(),
        )

    def test_idle_host(self) -> None:
        found = self.read()
        self.assertEqual(
            [('compute-1', False)],
            [(host.hostname, host.is_silent) for host in found.hosts],
        )
        self.assertEqual(
            {
                ('FPGA', _State.FREE): 4,
                ('FPGA', _State.FAULTY): 1,
                ('CUSTOM_QAT', _State.FREE): 2,
            },
            dict(found.units),
        )
        self.assertEqual((4, 1), (found.devices, found.faulty_devices))
        self.assertEqual(0, found.in_use)

    def test_each_state_is_as_the_fleet_shows_it(self) -> None:
        """The condition of each unit, told twice, is the same."""
        host_arqs.acquire(self.request(self.host.allocated()))
        free = [
            unit.uuid
            for unit in fleet.read(SILENCE_S).units
            if unit.arq is None
            and unit.resource_class == 'FPGA'
            and unit.condition.reason() is None
        ]
        handles = schema.ATTACH_HANDLES
        for uuid, values in zip(
            free,
            (
                {'unclean_since': 1},
                {'unclean_since': 1, 'unclean_reason': 'it is stuck'},
                {'present': False},
            ),
            strict=True,
        ):
            self.change(handles, handles.c.uuid == uuid, **values)
        [disabled] = {
            unit.device_uuid
            for unit in fleet.read(SILENCE_S).units
            if unit.address == '0001:00:01.0'
        }
        device.set_status(disabled, hardware.Status.MAINTAINING)
        self.assertEqual(
            {
                ('FPGA', _State.USED): 1,
                ('FPGA', _State.BEING_CLEANED): 1,
                ('FPGA', _State.CLEANING_FAILED): 1,
                ('FPGA', _State.GONE): 1,
                ('FPGA', _State.FAULTY): 1,
                ('CUSTOM_QAT', _State.FREE): 1,
                ('CUSTOM_QAT', _State.DISABLED): 1,
            },
            dict(self.read().units),
        )
        shown = fleet.read(SILENCE_S).units
        self.assertEqual(
            sum(
                unit.arq is None and unit.condition.reason() is not None
                for unit in shown
            ),
            sum(
                amount
                for (_class, state), amount in self.read().units.items()
                if state in model.UNUSABLE
            ),
        )

    def test_silent_host(self) -> None:
        self.change(
            schema.HOSTS,
            reported_at=schema.now()
            - datetime.timedelta(seconds=2 * SILENCE_S),
        )
        found = self.read()
        self.assertEqual([True], [host.is_silent for host in found.hosts])
        self.assertEqual(
            {
                ('FPGA', _State.HOST_SILENT): 5,
                ('CUSTOM_QAT', _State.HOST_SILENT): 2,
            },
            dict(found.units),
        )

    def test_bound(self) -> None:
        request = self.request(self.host.allocated())
        (arq,) = host_arqs.acquire(request)
        self.make_arqs(1)
        found = self.read()
        self.assertEqual(
            [
                model.BoundArq(
                    arq['uuid'],
                    request.instance_uuid,
                    base.PROJECT,
                    'compute-1',
                    'active',
                    'FPGA',
                    self.host.device_uuid(),
                    '0000:00:00.0',
                    'PAC',
                )
            ],
            found.bound,
        )
        self.assertEqual({'Bound': 1, 'Initial': 1}, dict(found.arqs))
        self.assertEqual(1, found.in_use)
        [seconds] = found.bind_s
        self.assertTrue(0 <= seconds < 60, seconds)

    def test_no_more_than_wanted(self) -> None:
        for region in range(3):
            host_arqs.acquire(self.request(self.host.allocated(0, region)))
        everything = self.read().bound
        self.assertEqual(3, len(everything))
        self.assertEqual(everything[:2], self.read(2).bound)

    def test_held(self) -> None:
        """Units by project and kind, of any role."""
        for region, project in enumerate((base.PROJECT, 'b', 'b')):
            host_arqs.acquire(
                self.request(
                    self.host.allocated(0, region), project_id=project
                )
            )
        self.assertEqual(
            [
                (base.PROJECT, 'PAC', 'FPGA', '', 1),
                ('b', 'PAC', 'FPGA', '', 2),
            ],
            list(map(tuple, self.read().held)),
        )

    def test_bound_by_novas_client(self) -> None:
        [uuid] = self.make_arqs(1)
        client_arqs.bind({uuid: self.place()})
        found = self.read()
        self.assertEqual([None], [arq.role for arq in found.bound])
        self.assertEqual(1, len(found.bind_s))
        client_arqs.unbind([uuid])
        found = self.read()
        self.assertEqual(([], []), (found.bound, found.bind_s))

    def test_bindings_that_failed(self) -> None:
        uuids = self.make_arqs(6)
        client_arqs.bind({uuid: self.place() for uuid in uuids[:1]})
        # All of the provider is taken: both are one instance's, and fail.
        client_arqs.bind(
            {uuid: self.place(instance_uuid='9' * 36) for uuid in uuids[1:3]}
        )
        found = self.read()
        self.assertEqual(
            {'BindFailed': 2, 'Bound': 1, 'Initial': 3}, found.arqs
        )
        self.assertEqual(2, len(found.bind_failures))
        self.assertEqual(1, len(found.bind_s))

    def test_why_bindings_failed(self) -> None:
        """What a binding says, and what is made of it, fit together."""
        instance = uuidutils.generate_uuid()
        client_arqs.bind(
            {
                uuid: self.place(instance_uuid=instance)
                for uuid in self.make_arqs(2)
            }
        )
        self.change(
            schema.HOSTS,
            reported_at=schema.now() - datetime.timedelta(hours=9),
        )
        client_arqs.bind({uuid: self.place() for uuid in self.make_arqs(1)})
        self.assertEqual(
            ['host_silent', 'no_free_unit', 'no_free_unit'],
            [
                failure_cause.of_binding(reason)
                for reason in self.read().bind_failures
            ],
        )

    def test_old_bindings_do_not_count(self) -> None:
        host_arqs.acquire(self.request(self.host.allocated()))
        self.change(
            schema.ARQS,
            created_at=schema.now()
            - datetime.timedelta(seconds=WINDOW_S + 60),
        )
        self.assertEqual([], self.read().bind_s)

    def test_programmings(self) -> None:
        self.program(7)
        self.program(None)
        self.program(3, failure_cause.INTERRUPTED)
        # The clock of the host was set back.
        self.program(-5)
        self.program(9, age_s=WINDOW_S + 60)
        found = self.read()
        self.assertEqual([7], found.programming_s)
        self.assertEqual(1, found.programmings_running)
        self.assertEqual(
            [failure_cause.INTERRUPTED], found.programming_failures
        )

    def test_findings(self) -> None:
        findings = (
            finding.Finding(finding.Kind.MDEV, 'it is gone', True),
            finding.Finding(finding.Kind.GUEST_GONE, 'one'),
            finding.Finding(finding.Kind.GUEST_GONE, 'two'),
        )
        dataclasses.replace(self.host, findings=findings).report()
        self.assertEqual(
            {('mdev', True): 1, ('guest_gone', False): 2},
            self.read().findings,
        )

    def test_constant_number_of_statements(self) -> None:
        few = self.statements(self.read)
        for number in range(5):
            self.make_noise(reports.SimulatedHost(f'noise-{number}', (4, 2)))
            self.program(number)
        self.assertEqual(few, self.statements(self.read))
        self.assertEqual(10, len(few))
