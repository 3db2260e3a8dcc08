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

"""Servers and their moves, as Nova's API tells them."""

from collections.abc import Collection
from collections.abc import Iterable
from typing import Any
from typing import NamedTuple

from keystoneauth1 import adapter as ks_adapter
from openstack import exceptions as sdk_exceptions
from openstack.compute.v2 import migration
from openstack.compute.v2 import server
from oslo_utils import uuidutils

from nova_accel.model import nova_server
from nova_accel.model.fleet import fleet_sources
from nova_accel.overview import parallel

#: It has the flavor's name in a server, the uuid of a migration, and tells
#: which servers are in a cell that does not answer.
_MICROVERSION = '2.80'

_WORDS = 'Asking Nova'


#: The task of a server whose task no one knows.
_UNTOLD = 'unknown'

#: The states in which Nova may have no host for a server.
_HOMELESS = frozenset(
    {'building', 'error', 'shelved_offloaded', 'deleted', 'soft-delete'}
)


class KnownServers(NamedTuple):
    """Nova's words, and the servers of which it does not tell enough.

    These look busy, so that no one takes them for a fault.
    """

    nova: fleet_sources.NovaReading
    untold: frozenset[str]


def uuid_of(app: Any, name_or_uuid: str) -> str:
    """The uuid of a server. Nova is asked only for one of a name.

    :param app: the program, of a command
    :raises NotFoundException: openstacksdk's; no server of the project of the
        one who types has the name
    """
    if uuidutils.is_uuid_like(name_or_uuid):
        return name_or_uuid
    compute = app.client_manager.sdk_connection.compute
    uuid: str = compute.find_server(name_or_uuid, ignore_missing=False).id
    return uuid


def read(
    compute: ks_adapter.Adapter,
    service_hosts: Iterable[str],
    uuids: Collection[str],
) -> KnownServers:
    """Nova's words about servers. Its PCI tracker has none in the API.

    Migrations are read first. If one ends meanwhile, the server is already on
    the host where it stays. Then it takes a request for each host, and one for
    each server that is on none of them.

    :param compute: openstacksdk's proxy
    :param service_hosts: those on which the servers may be
    :param uuids: of servers, or of other consumers in Placement
    """
    moves = _migrations(compute)
    moving = {*moves.values()}
    found: dict[str, server.Server] = {}

    def on_host(name: str) -> list[server.Server]:
        return list(
            server.Server.list(
                compute,
                base_path='/servers/detail',
                microversion=_MICROVERSION,
                all_projects=True,
                compute_host=name,
            )
        )

    def one(uuid: str) -> server.Server | None:
        try:
            return server.Server.new(id=uuid).fetch(
                compute, microversion=_MICROVERSION
            )
        except sdk_exceptions.NotFoundException:
            return None

    for some in parallel.ask(_WORDS, on_host, sorted(service_hosts)).values():
        found.update((each.id, each) for each in some)
    missing = sorted({*uuids}.difference(found, moves))
    for uuid, each in parallel.ask(_WORDS, one, missing).items():
        if each is not None:
            found[uuid] = each
    wanted = {uuid: each for uuid, each in found.items() if uuid in uuids}
    return KnownServers(
        fleet_sources.NovaReading(
            servers={
                uuid: _parse(each, uuid in moving)
                for uuid, each in wanted.items()
            },
            consumers={*moves},
        ),
        frozenset(uuid for uuid, each in wanted.items() if _is_untold(each)),
    )


def _migrations(compute: ks_adapter.Adapter) -> dict[str, str]:
    """The unfinished migrations: uuid -> uuid of the server."""

    def of_status(status: str) -> list[tuple[str, str]]:
        return [
            (each.uuid, each.server_id)
            for each in migration.Migration.list(
                compute, microversion=_MICROVERSION, status=status
            )
        ]

    return {
        uuid: server_uuid
        for some in parallel.ask(
            _WORDS, of_status, sorted(nova_server.UNFINISHED)
        ).values()
        for uuid, server_uuid in some
    }


def _is_untold(told: server.Server) -> bool:
    """Whether its state or its host is missing.

    Its cell may not answer, or a policy of Nova hides its host.
    """
    return told.vm_state is None or (
        told.compute_host is None and told.vm_state not in _HOMELESS
    )


def _parse(
    told: server.Server, is_migrating: bool
) -> fleet_sources.FleetServer:
    is_untold = _is_untold(told)
    return fleet_sources.FleetServer(
        host=told.compute_host,
        vm_state=told.vm_state,
        task_state=_UNTOLD if is_untold else told.task_state,
        is_migrating=is_migrating or is_untold,
        name=told.name or '',
        flavor=(told.flavor and told.flavor.original_name) or '',
        image=(told.image and told.image.id) or '',
    )
