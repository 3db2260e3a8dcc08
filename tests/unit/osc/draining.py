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

"""A host whose servers a command is to move."""

import functools
import types
from typing import Any

from oslo_utils import uuidutils

from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.model.fleet import drain_plan
from nova_accel.osc import drain_cloud
from nova_accel.testing import reports
from unit.osc import base
from unit.osc import simulated_nova


class DrainTestCase(base.CommandTestCase):
    """Two hosts with four FPGAs each.

    :ivar nova: the servers
    :ivar cloud: both APIs, for the drain of the first host
    """

    def setUp(self) -> None:
        super().setUp()
        self.host, self.other = (
            reports.SimulatedHost(name, regions=(1, 1, 1, 1))
            for name in ('compute-1', 'compute-2')
        )
        self.host.report()
        self.other.report()
        device_profile.create('gold', [{'resources:FPGA': '1'}])
        self.nova = simulated_nova.SimulatedNova()
        self.app.client_manager.sdk_connection = types.SimpleNamespace(
            compute=self.nova.adapter
        )
        self.cloud = drain_cloud.DrainCloud(
            self.nova.adapter, self.api.adapter, 'compute-1'
        )

    def acquire(
        self, host: reports.SimulatedHost, bus: int
    ) -> host_arqs.AcquireRequest:
        """Let another server have an FPGA of a host."""
        request = host_arqs.AcquireRequest(
            instance_uuid=uuidutils.generate_uuid(),
            hostname=host.hostname,
            role='active',
            attempt=1,
            project_id='a' * 32,
            device_profile_name='gold',
            allocations=(host.allocated(bus),),
        )
        host_arqs.acquire(request)
        return request

    def boot(self, name: str, **fields: Any) -> simulated_nova.Server:
        """A server with the next FPGA of the first host."""
        bus = len(self.nova.servers)
        request = self.acquire(self.host, bus)
        uuid = request.instance_uuid
        made = simulated_nova.Server(
            uuid,
            name,
            functools.partial(host_arqs.release, *request.key, 1),
            **fields,
        )
        self.nova.servers[uuid] = made
        return made

    def fill_others(self) -> None:
        """Let no other host have a free unit."""
        for bus in range(4):
            self.acquire(self.other, bus)


#: What an attempt to migrate a whole function live ends with.
REFUSED = 'vfio-pci cannot migrate it live'

#: The server cannot go live.
NOT_LIVE = {'os-migrateLive': REFUSED}

WAYS = drain_plan.Way
