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


"""The servers of a cloud that may move, and their moves between hosts."""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple
from urllib import parse

from keystoneauth1 import adapter as ks_adapter
from osc_lib import exceptions

from nova_accel.model import nova_server
from nova_accel.model.fleet import drain_plan
from nova_accel.osc import accelerator_calls
from nova_accel.osc import drain_cloud
from nova_accel.osc import host_places
from nova_accel.osc import nova_calls
from nova_accel.overview import parallel

#: The metadata of a server that is to stay where it is.
PINNED = 'nova_accel:pinned'

_WORDS = 'Asking Nova'

#: The types of migrations that begin where a command of ours may have begun
#: them.
_MOVES = frozenset({'migration', 'live-migration'})


class Resident(NamedTuple):
    """A server on the host where it has devices.

    ``is_split`` says that it has devices of another host, too.
    """

    server: drain_plan.DrainedServer
    hostname: str
    is_locked: bool
    is_pinned: bool
    is_split: bool


class RoomCloud:
    """Both APIs, for moves between any hosts.

    :param nova: of the service type ``compute``
    :param accelerator: of the service type ``accelerator``
    """

    def __init__(
        self, nova: ks_adapter.Adapter, accelerator: ks_adapter.Adapter
    ) -> None:
        self._nova = nova
        self._accelerator = accelerator
        self._user_id = nova.get_user_id()

    def residents(self) -> dict[str, Resident]:
        """Uuid -> each server that has devices, and is on their host.

        :raises CommandError: an API is in trouble.
        """
        of_hosts: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
        for page in accelerator_calls.pages(
            self._accelerator, '/accelerator_requests', 'arqs'
        ):
            for arq in page:
                if arq['instance_uuid'] and arq['attach_handle_uuid']:
                    here = of_hosts.setdefault(arq['hostname'], {})
                    here.setdefault(arq['instance_uuid'], []).append(arq)
        shown = parallel.ask(_WORDS, self._on_host, sorted(of_hosts))
        hosts = collections.Counter(
            uuid for here in of_hosts.values() for uuid in here
        )
        return {
            server['id']: Resident(
                drain_cloud.parse_server(
                    server,
                    hostname,
                    drain_cloud.holding_of(of_hosts[hostname][server['id']]),
                ),
                hostname,
                bool(server.get('locked')),
                PINNED in (server.get('metadata') or {}),
                hosts[server['id']] > 1,
            )
            for hostname, servers in shown.items()
            for server in servers
            if server['id'] in of_hosts[hostname]
        }

    def _on_host(self, hostname: str) -> list[Mapping[str, Any]]:
        """All servers of a host, of those in cells that answer."""
        return [
            server
            for server in nova_calls.listed(
                self._nova,
                '/servers/detail',
                'servers',
                all_tenants='1',
                node=hostname,
            )
            if 'OS-EXT-SRV-ATTR:hypervisor_hostname' in server
        ]

    def plan(
        self, profile: str, count: int, troubles: Mapping[str, int]
    ) -> dict[str, Any]:
        """The moves that make room, as the API plans them.

        :param troubles: uuid of each server that may move -> its trouble
        :raises CommandError: the API refuses it.
        """
        found: dict[str, Any] = accelerator_calls.call(
            self._accelerator,
            'POST',
            f'/device_profiles/{parse.quote(profile, "")}/room',
            json={'count': count, 'servers': troubles},
        )['room']
        return found

    def moves(self, planned: Iterable[Mapping[str, Any]]) -> 'Moves':
        """The moves of a plan.

        :raises CommandError: Nova does not know a host any more.
        """
        moves = list(planned)
        hosts = host_places.service_hosts(self._nova) if moves else {}
        for move in moves:
            if move['to'] not in hosts:
                raise exceptions.CommandError(
                    f'Nova has no hypervisor {move["to"]} any more'
                )
        return self._leaving(
            {move['server_uuid']: move['from'] for move in moves},
            {move['server_uuid']: hosts[move['to']] for move in moves},
        )

    def begun(self) -> 'Moves':
        """The moves that the same user has begun, and that have not ended.

        :raises CommandError: Nova is in trouble.
        """

        def of_status(status: str) -> list[Mapping[str, Any]]:
            found: list[Mapping[str, Any]] = nova_calls.call(
                self._nova,
                'GET',
                '/os-migrations',
                params={'user_id': self._user_id, 'status': status},
            )['migrations']
            return found

        unfinished = parallel.ask(
            _WORDS, of_status, sorted(nova_server.UNFINISHED)
        )
        return self._leaving(
            {
                migration['instance_uuid']: migration['source_node']
                for migrations in unfinished.values()
                for migration in migrations
                if migration['migration_type'] in _MOVES
            },
            {},
        )

    def _leaving(
        self, sources: Mapping[str, str], targets: Mapping[str, str]
    ) -> 'Moves':
        clouds = {
            hostname: drain_cloud.DrainCloud(
                self._nova, self._accelerator, hostname, self._user_id
            )
            for hostname in set(sources.values())
        }
        return Moves(
            {uuid: clouds[hostname] for uuid, hostname in sources.items()},
            targets,
        )


class Moves:
    """Servers that leave their hosts: a :class:`.host_emptying.Cloud`.

    :param sources: uuid -> the host that the server leaves
    :param targets: uuid -> the service host to which it goes; a server without
        one begins no move
    """

    def __init__(
        self,
        sources: Mapping[str, drain_cloud.DrainCloud],
        targets: Mapping[str, str],
    ) -> None:
        self._sources = sources
        self._targets = targets

    def holdings(self) -> dict[str, drain_cloud.Holding]:
        """Server uuid -> what it still has of the host that it leaves.

        :raises CommandError: the API refuses it.
        """
        here = {
            cloud: cloud.holdings() for cloud in set(self._sources.values())
        }
        return {
            uuid: here[cloud][uuid]
            for uuid, cloud in self._sources.items()
            if uuid in here[cloud]
        }

    def no_room(self, profile: str) -> str | None:
        """The plan knows of room."""

    def server(
        self, uuid: str, holding: drain_cloud.Holding
    ) -> drain_plan.DrainedServer | None:
        return self._sources[uuid].server(uuid, holding)

    def act(self, uuid: str, way: drain_plan.Way) -> None:
        """As :meth:`.DrainCloud.act`, to the host of the plan."""
        if way is drain_plan.Way.CONFIRM:
            self._sources[uuid].act(uuid, way)
        elif uuid in self._targets:
            self._sources[uuid].act(uuid, way, self._targets[uuid])
        else:
            raise nova_calls.Refused('it is not moved once more')

    def why_failed(self, uuid: str) -> str:
        return self._sources[uuid].why_failed(uuid)
