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

"""One test, one empty database, and what tests ask of it."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import threading
from typing import Any

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import reports
from rig import quick_database

PROJECT = 'a' * 32
RACERS = 8

FPGA = {'resources:FPGA': '1'}
QAT = {'resources:CUSTOM_QAT': '1'}


class DatabaseTestCase(testtools.TestCase):
    backend: str

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.database = self.useFixture(
            quick_database.QuickDatabase(self.backend)
        )
        self.host = reports.SimulatedHost()

    def make_profile(
        self, *groups: dict[str, str], name: str = 'fpga'
    ) -> None:
        device_profile.create(name, groups or (FPGA,))

    def request(
        self,
        *allocations: provider_allocation.ProviderAllocation,
        attempt: int = 1,
        **fields: Any,
    ) -> host_arqs.AcquireRequest:
        """A request for the first region, unless others are given."""
        return host_arqs.AcquireRequest(
            **{
                'instance_uuid': uuidutils.generate_uuid(),
                'hostname': self.host.hostname,
                'role': 'active',
                'attempt': attempt,
                'project_id': PROJECT,
                'device_profile_name': 'fpga',
                'allocations': allocations or (self.host.allocated(),),
                **fields,
            }
        )

    def place(
        self, rp_uuid: str | None = None, instance_uuid: str | None = None
    ) -> dict[str, str]:
        """Where to bind an ARQ: the first region unless another is given."""
        return {
            'hostname': self.host.hostname,
            'device_rp_uuid': rp_uuid or self.host.rp_uuid(),
            'instance_uuid': instance_uuid or uuidutils.generate_uuid(),
        }

    def make_arqs(self, amount: int) -> list[str]:
        """Uuids of unbound ARQs."""
        return [
            arq['uuid']
            for _ in range(amount)
            for arq in client_arqs.create('fpga', PROJECT)
        ]

    def make_noise(self, host: reports.SimulatedHost) -> None:
        """ARQs of others, one bound to each region of another host."""
        host.report()
        regions = [
            (bus, region)
            for bus, count in enumerate(host.regions)
            for region in range(count or 0)
        ]
        profile = f'all of {host.hostname}'
        self.make_profile(
            *(
                {'resources:FPGA': str(count)}
                for count in host.regions
                if count
            ),
            name=profile,
        )
        arqs = client_arqs.create(profile, PROJECT)
        client_arqs.bind(
            {
                arq['uuid']: {
                    'hostname': host.hostname,
                    'device_rp_uuid': host.rp_uuid(*region),
                    'instance_uuid': uuidutils.generate_uuid(),
                }
                for arq, region in zip(arqs, regions, strict=True)
            }
        )

    def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        with self.database.engine.connect() as connection:
            return _rows(connection, table)

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        with self.database.engine.connect() as connection:
            return {
                table.name: _rows(connection, table)
                for table in schema.METADATA.sorted_tables
            }

    def taken(self) -> dict[str, str]:
        """Attach handle -> ARQ that has it."""
        return {
            handle['uuid']: handle['arq_uuid']
            for handle in self.rows(schema.ATTACH_HANDLES)
            if handle['arq_uuid'] is not None
        }

    def assert_consistent(self) -> None:
        """Each bound ARQ has a handle of its own, and no other ARQ has."""
        self.assertEqual(
            sorted(
                arq['uuid']
                for arq in self.rows(schema.ARQS)
                if arq['state'] == 'Bound'
            ),
            sorted(self.taken().values()),
        )

    @contextlib.contextmanager
    def before_statement(self, call: Callable[[str], None]) -> Iterator[None]:
        """Call with each statement that the product sends."""

        def listener(
            connection: Any, cursor: Any, statement: str, *_arguments: Any
        ) -> None:
            # SQLite's; the other drivers do it unseen.
            if statement not in ('BEGIN', 'BEGIN IMMEDIATE', 'ROLLBACK'):
                call(statement)

        engine = self.database.engine
        sa.event.listen(engine, 'before_cursor_execute', listener)
        try:
            yield
        finally:
            sa.event.remove(engine, 'before_cursor_execute', listener)

    def statements(self, call: Callable[[], Any]) -> list[str]:
        """The statements that a call takes."""
        seen: list[str] = []
        with self.before_statement(seen.append):
            call()
        return seen


def _rows(connection: sa.Connection, table: sa.Table) -> list[dict[str, Any]]:
    return [
        dict(row)
        for row in connection.execute(
            sa.select(table).order_by(table.c.id)
        ).mappings()
    ]


def race(calls: list[Callable[[], Any]]) -> list[Any]:
    """All at once, each in a thread; what each returns or raises."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return call()
        except Exception as fault:
            return fault

    with futures.ThreadPoolExecutor(len(calls)) as executor:
        return list(executor.map(run, calls))
