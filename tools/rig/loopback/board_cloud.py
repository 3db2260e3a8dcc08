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

"""Servers on hosts with HGX boards, from the request to the bound devices.

The request filters, Nova's SchedulerManager with our filter and weigher,
Placement and the database of accelerators are the real ones. There is no
nova-compute: its reports are made here, and its binding is called.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_config import fixture as config_fixture

from nova_accel import conf
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import host_arqs
from nova_accel.model import arq_types
from nova_accel.model import pci_address
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import request_filter
from nova_accel.testing import database
from nova_accel.testing import scheduling
from rig.loopback import bare_scheduler
from rig.loopback import board_host
from rig.loopback import crowd

#: Seconds for which a host is not taken for dead.
_ALIVE_S = 86400

_PROJECT = 'project'
_OF_A_NODE = {'VCPU': 1000, 'MEMORY_MB': 1_000_000}


@dataclasses.dataclass(frozen=True)
class Server:
    """A server with the devices that its host has bound for it."""

    uuid: str
    profile: str
    hostname: str
    addresses: tuple[pci_address.PciAddress, ...]
    group_ids: tuple[int, ...]


class BoardCloud(fixtures.Fixture):
    """Hosts with a board each.

    :param placement: the one to use, None for a new one
    :ivar servers: all servers, by their uuids
    """

    def __init__(
        self,
        hosts: Sequence[board_host.BoardHost],
        placement: scheduling.Placement | None = None,
    ) -> None:
        super().__init__()
        self.placement = placement or scheduling.Placement()
        self.hosts = {host.hostname: host for host in hosts}
        self.servers: dict[str, Server] = {}
        self._profiles: set[str] = set()

    def _setUp(self) -> None:
        # The hosts report once.
        self.useFixture(config_fixture.Config(conf.CONF)).config(
            host_silence_s=_ALIVE_S, group='nova_accel'
        )
        self.useFixture(crowd.PlacementWorkers(1))
        self.useFixture(database.Database())
        self.useFixture(self.placement)
        self._context = nova_context.get_admin_context()
        for host in self.hosts.values():
            self.add(host)
        self._scheduler = bare_scheduler.BareScheduler(
            {host.hostname: host.node_uuid for host in self.hosts.values()}
        )

    def add(self, host: board_host.BoardHost) -> None:
        """Publish a host in Placement, and report it."""
        self.placement.add_provider(
            host.hostname, _OF_A_NODE, uuid=host.node_uuid
        )
        for provider in host.layout().providers:
            self.placement.add_provider(
                provider.name,
                provider.totals,
                provider.parent or host.node_uuid,
                provider.traits,
                provider.uuid,
            )
        host.report()

    def profile(self, name: str, *groups: Mapping[str, str]) -> None:
        """Make a device profile, unless it is there."""
        if name not in self._profiles:
            device_profile_db.create(name, groups)
            self._profiles.add(name)

    def request(self, profile: str) -> 'objects.RequestSpec':
        """The request for a server, after the request filters.

        :param profile: its name, or several with commas between them
        :raises RequestFilterFailed: a filter refuses it
        """
        spec = scheduling.request_spec({device_profile.FLAVOR_KEY: profile})
        request_filter.merge_device_profile(self._context, spec)
        request_filter.check_accelerators(self._context, spec)
        return spec

    def boot(self, profile: str) -> Server:
        """A server with the accelerators of a profile.

        :raises NoValidHost: no host has what is asked for
        :raises RequestFilterFailed: likewise, and the text says why
        """
        spec = self.request(profile)
        uuid = spec.instance_uuid
        [[selected]] = self._scheduler.select(
            spec, bare_scheduler.Answer(spec), [uuid]
        )
        return self._bound(
            profile,
            uuid,
            self.hosts[selected.nodename],
            json.loads(selected.allocation_request)['allocations'],
        )

    def _bound(
        self,
        profile: str,
        uuid: str,
        host: board_host.BoardHost,
        allocations: Mapping[str, Mapping[str, dict[str, int]]],
    ) -> Server:
        arqs = host_arqs.acquire(
            host_arqs.AcquireRequest(
                instance_uuid=uuid,
                hostname=host.hostname,
                role=arq_types.Role.ACTIVE,
                attempt=1,
                project_id=_PROJECT,
                device_profile_name=profile,
                allocations=host.allocations(
                    (rp_uuid, allocated['resources'])
                    for rp_uuid, allocated in allocations.items()
                ),
            )
        )
        server = Server(
            uuid,
            arqs[0]['device_profile_name'],
            host.hostname,
            tuple(
                pci_address.PciAddress.parse(
                    '{domain}:{bus}:{device}.{function}'.format(
                        **(arq['attach_handle_info'] or {})
                    )
                )
                for arq in arqs
            ),
            tuple(arq['device_profile_group_id'] for arq in arqs),
        )
        self.servers[uuid] = server
        return server

    def is_refused(self, profile: str) -> bool:
        """Boot a server, and say whether it was refused."""
        try:
            self.boot(profile)
        except (exception.NoValidHost, exception.RequestFilterFailed):
            return True
        return False

    def delete(self, uuid: str) -> None:
        server = self.servers.pop(uuid)
        self.placement.client.delete(f'/allocations/{uuid}', version='1.36')
        host_arqs.release(uuid, server.hostname, arq_types.Role.ACTIVE, 2)

    def modules(self, server: Server) -> frozenset[int]:
        """The modules of a server."""
        return self.hosts[server.hostname].modules(server.addresses)

    def free(self, hostname: str) -> frozenset[int]:
        """The modules of a board that no server has."""
        return frozenset(range(1, 9)).difference(
            *(
                self.modules(server)
                for server in self.servers.values()
                if server.hostname == hostname
            )
        )

    def has_whole(self, size: int) -> bool:
        """Whether all GPUs of a partition of that size are free."""
        return any(
            len(partition) == size and partition <= free
            for hostname, host in self.hosts.items()
            for free in (self.free(hostname),)
            for partition in host.supported
        )
