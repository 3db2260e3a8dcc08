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
import io
import pathlib
import types
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel.cmd import manage
from nova_accel.conf import CONF
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import nova_server
from nova_accel.testing import reports
from rig import quick_database

SERVER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
HERE, THERE = 'compute-1.service', 'compute-2.service'


def run_command(
    kind: type[Any], name: str, *arguments: str
) -> tuple[int, str]:
    """The exit status of a command, and what it prints."""
    output, errors = io.StringIO(), io.StringIO()
    command = kind(
        types.SimpleNamespace(
            stdout=output,
            stderr=errors,
            options=types.SimpleNamespace(debug=False),
        ),
        None,
    )
    command.cmd_name = name
    parser = command.get_parser(name)
    status = command.run(parser.parse_args(arguments))
    return status, output.getvalue() + errors.getvalue()


class DriftTestCase(testtools.TestCase):
    """A host with two regions, and what Nova says of servers.

    :ivar servers: instance uuid -> server
    """

    def setUp(self) -> None:
        super().setUp()
        CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(CONF.reset)
        self.log = self.useFixture(fixtures.FakeLogger())
        self.useFixture(quick_database.QuickDatabase())
        self.host = reports.SimulatedHost(regions=(2,))
        self.host.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        self.servers: dict[str, nova_server.Server] = {}
        self.asked: list[int] = []
        for name, fake in (('connect', lambda: None), ('servers', self.ask)):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.cells.{name}', fake)
            )

    def ask(self, uuids: set[str]) -> dict[str, nova_server.Server]:
        self.asked.append(len(uuids))
        return {
            uuid: server
            for uuid, server in self.servers.items()
            if uuid in uuids
        }

    def acquire(self, role: str = 'active') -> None:
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                SERVER,
                'compute-1',
                role,
                1,
                'project',
                'fpga',
                (self.host.allocated(),),
            )
        )

    def bind(self) -> str:
        """As Nova's Cyborg client does."""
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': 'compute-1',
                    'instance_uuid': SERVER,
                    'device_rp_uuid': self.host.rp_uuid(),
                }
            }
        )
        uuid: str = made['uuid']
        return uuid

    def arqs(self) -> list[dict[str, Any]]:
        return client_arqs.get_all()

    def taken(self) -> int:
        with engine.reader() as connection:
            return int(
                connection.scalar(
                    sa.select(sa.func.count())
                    .select_from(schema.ATTACH_HANDLES)
                    .where(schema.ATTACH_HANDLES.c.arq_uuid.is_not(None))
                )
                or 0
            )

    def age(self, table: sa.Table, name: str, age: datetime.timedelta) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.update(table).values({name: schema.now() - age})
            )

    def silence(self) -> None:
        self.age(schema.HOSTS, 'reported_at', datetime.timedelta(hours=1))


class ManageTestCase(testtools.TestCase):
    """Runs commands on a database of its own.

    :ivar directory: where the database is
    :ivar output: what the commands have printed
    :ivar errors: the same, on the standard error
    """

    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.output, self.errors = io.StringIO(), io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.errors))
        # The command adds handlers of its own to the root logger.
        self.useFixture(fixtures.FakeLogger())
        self.addCleanup(engine.CONF.clear)
        engine.manager.cache_clear()
        self.addCleanup(engine.manager.cache_clear)

    def run_command(
        self, *command: str, configuration: str | None = None
    ) -> int:
        engine.CONF.clear()
        path = self.directory / 'nova.conf'
        path.write_text(
            configuration
            or (
                '[nova_accel_database]\n'
                f'connection = sqlite:///{self.directory}/accelerators.sqlite\n'
            )
        )
        return manage.main(['--config-file', str(path), *command])
