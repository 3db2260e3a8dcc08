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

"""A host that moves from Cyborg, with a Placement and a Nova made up."""

from collections.abc import Callable
from collections.abc import Collection
import datetime
import itertools
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel import exceptions
from nova_accel.conf import CONF
from nova_accel.db import imports
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import nova_server
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import snapshot
from nova_accel.testing import reports
from rig import quick_database
from rig.cyborg import made_up
from unit.cmd import made_up_placement

NODE = 'compute-1.example'
FPGA = {'resources:FPGA': '1'}


class MoveTestCase(testtools.TestCase):
    """Two servers have the two FPGAs of a host, each with one region.

    This is Cyborg's database, as the command's own module opens it.

    :ivar servers: instance uuid -> server, as Nova knows them
    :ivar told: the ARQs that Cyborg's database has lost
    :ivar theirs: Placement before the move
    """

    def setUp(self) -> None:
        super().setUp()
        CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(CONF.reset)
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(quick_database.QuickDatabase())
        self.placement = self.useFixture(made_up_placement.MadeUpPlacement())
        self.told: set[str] = set()
        self.servers: dict[str, nova_server.Server] = {}
        self.host = reports.SimulatedHost(NODE, regions=(1, 1))
        self.cyborg = made_up.MadeUpCyborg()
        self.profile = self.cyborg.profile('fpga', FPGA)
        for bus in range(2):
            self.add_card(bus, f'server-{bus}')
        self.theirs = self.placement.state()
        for name, fake in (
            ('cells.connect', lambda: None),
            ('cells.compute_nodes', lambda: [self.node()]),
            ('cells.servers', self.ask_nova),
            ('cyborg.cyborg_database.CyborgDatabase', lambda _url: self),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.{name}', fake)
            )

    def add_card(self, bus: int, instance_uuid: str) -> None:
        rp_uuid = self.cyborg.uuid()
        [handle] = self.cyborg.deployable(
            self.cyborg.device('compute-1', bus, type='FPGA'),
            'FPGA',
            made_up.pci_info(bus, device='01'),
            rp_uuid=rp_uuid,
        )
        self.cyborg.arq(self.profile, handle, instance_uuid)
        self.servers[instance_uuid] = nova_server.Server('compute-1', 'active')
        self.placement.provider(rp_uuid, FPGA=1)
        self.placement.allocate(instance_uuid, rp_uuid, FPGA=1)

    def node(self) -> hosts.CyborgNode:
        return hosts.CyborgNode(self.host.node_uuid, NODE, 'compute-1')

    def ask_nova(
        self, uuids: Collection[str]
    ) -> dict[str, nova_server.Server]:
        return {
            uuid: server
            for uuid, server in self.servers.items()
            if uuid in uuids
        }

    def read(self) -> snapshot.Snapshot:
        return self.cyborg.snapshot()

    def delete_arqs(self, uuids: Collection[str]) -> int:
        self.told.update(uuids)
        return len(uuids)

    @property
    def providers(self) -> list[str]:
        """Those of Cyborg."""
        return [
            row.rp_uuid or '' for row in self.cyborg.snapshot().deployables
        ]

    def report(self, second: int | None = 1) -> None:
        """Nova's driver is ours now, and Placement knows our providers.

        :param second: the number of regions of the second FPGA; None if the
            host does not report it
        """
        reports.SimulatedHost(NODE, regions=(1, second)).report()
        for bus in range(1 if second is None else 2):
            rp_uuid = self.host.rp_uuid(bus)
            self.placement.provider(rp_uuid, FPGA=1)
            self.placement.ours.add(rp_uuid)

    @staticmethod
    def silence() -> None:
        """The host has not reported for an hour, if it ever has."""
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS)
                .where(schema.HOSTS.c.reported_at > imports.NEVER)
                .values(reported_at=schema.now() - datetime.timedelta(hours=1))
            )

    def repeat(self, step: Callable[[], Any]) -> Any:
        """Repeat a step whose connection is lost at ever later changes.

        :returns: what it returns when nothing is lost any more
        """
        for number, what in itertools.product(
            range(100), ('change', 'answer')
        ):
            self.placement.changes.clear()
            self.placement.lost = (number, what)
            try:
                result = step()
            except exceptions.ServiceUnavailable:
                continue
            if number:
                self.placement.lost = None
                return result
            # What it had to do was done, and its answers were lost.
            raise AssertionError('it changes nothing')
        raise AssertionError('it does not end')

    def assert_switched(self) -> None:
        self.assertEqual(
            {
                f'server-{bus}': {self.host.rp_uuid(bus): {'FPGA': 1}}
                for bus in range(2)
            },
            self.placement.allocations,
        )
        self.assertEqual(
            [{}, {}],
            [self.placement.inventories[each] for each in self.providers],
        )
