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

"""A fleet that the ``openstack`` program reads by three APIs."""

import types
from typing import Any

import fixtures

from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.testing import reports
from unit.osc import base
from unit.osc import listed_servers

SERVER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
PROJECT = 'a' * 32


class FleetTestCase(base.CommandTestCase):
    """Two hosts; a server of the first one has one of its two regions.

    :ivar nova: Nova's API, with the server, and Placement's
    :ivar log: what is logged
    """

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.hosts = [
            reports.SimulatedHost(f'compute-{number}', (2,))
            for number in (1, 2)
        ]
        for host in self.hosts:
            host.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (self.arq,) = host_arqs.acquire(
            host_arqs.AcquireRequest(
                SERVER,
                'compute-1',
                'active',
                1,
                PROJECT,
                'fpga',
                (self.hosts[0].allocated(),),
            )
        )
        self.nova = listed_servers.Apis()
        self.nova.servers[SERVER] = listed_servers.server(
            SERVER, 'compute-1.service'
        )
        self.app.client_manager.sdk_connection = types.SimpleNamespace(
            compute=self.nova.compute, placement=self.nova.placement
        )

    def run_command(
        self, command: type[Any], *arguments: str
    ) -> tuple[int, str]:
        """The exit status, and what is printed."""
        made, parsed = self.parse(command, *arguments)
        made.cmd_name = 'openstack'
        for stream in (self.app.stdout, self.app.stderr):
            stream.seek(0)
            stream.truncate()
        status = made.run(parsed)
        return status, self.app.stdout.getvalue() + self.app.stderr.getvalue()
