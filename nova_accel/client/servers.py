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


"""Nova's view of the instances that have accelerators of a host."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.objects import fields
from nova.scheduler import utils
import oslo_messaging

from nova_accel import exceptions
from nova_accel.model import nova_server
from nova_accel.model.fpga import programming_record
from nova_accel.model.providers import counted


def of_host(
    service_host: str, uuids: Collection[str]
) -> dict[str, nova_server.Server]:
    """The existing ones of the instances, by uuid.

    It makes at most four calls.

    Migrations are read first. If one ends meanwhile, the instance is already
    on the host where it stays.

    :param service_host: the host's name in Nova's RPC
    :raises oslo_messaging.MessagingException: Nova does not answer
    """
    context = nova_context.get_admin_context()
    migrating = {
        migration.instance_uuid
        for filters in (
            {'host': service_host, 'status': sorted(nova_server.UNFINISHED)},
            # Until the scheduler's hosts are checked, a live migration has no
            # destination.
            {
                'migration_type': fields.MigrationType.LIVE_MIGRATION,
                'status': sorted(nova_server.LIVE),
            },
        )
        for migration in objects.MigrationList.get_by_filters(context, filters)
    }
    found = {
        instance.uuid: instance
        for instance in objects.InstanceList.get_by_host(
            context, service_host, expected_attrs=['flavor']
        )
    }
    if others := sorted(set(uuids) - found.keys()):
        found |= {
            instance.uuid: instance
            for instance in objects.InstanceList.get_by_filters(
                context,
                {'uuid': others, 'deleted': False, 'soft_deleted': True},
                expected_attrs=['flavor'],
            )
        }
    # An instance may be hidden while it moves between cells.
    servers = dict.fromkeys(
        migrating, nova_server.Server(host=None, is_migrating=True)
    )
    servers |= {
        uuid: nova_server.Server(
            host=instance.host,
            vm_state=instance.vm_state,
            task_state=instance.task_state,
            is_migrating=uuid in migrating,
            is_resized=instance.old_flavor is not None,
        )
        for uuid, instance in found.items()
    }
    return {uuid: servers[uuid] for uuid in uuids if uuid in servers}


def network_infos(
    uuids: Collection[str],
) -> dict[str, list[Mapping[str, Any]]]:
    """The ports of existing instances, as Nova caches them, by instance uuid.

    :raises oslo_messaging.MessagingException: Nova does not answer
    """
    return {
        instance.uuid: instance.get_network_info()
        for instance in objects.InstanceList.get_by_filters(
            nova_context.get_admin_context(),
            {'uuid': sorted(uuids), 'deleted': False, 'soft_deleted': True},
            expected_attrs=['info_cache'],
        )
    }


def holder(uuid: str) -> programming_record.Holder:
    """Nova's view of an instance that has an FPGA region.

    Nova's API sets a task before it tells the host. So an instance that is
    stopped and has no task is not about to start.

    :raises Conflict: there is no such instance.
    :raises ServiceUnavailable: Nova does not answer.
    """
    try:
        found = list(
            objects.InstanceList.get_by_filters(
                nova_context.get_admin_context(),
                {'uuid': [uuid], 'deleted': False},
                expected_attrs=[],
            )
        )
    except oslo_messaging.MessagingException as error:
        raise exceptions.ServiceUnavailable(
            f'Nova does not say whether server {uuid} is stopped: {error}'
        ) from error
    if not found:
        raise exceptions.Conflict(f'there is no server {uuid}')
    return programming_record.Holder(
        found[0].project_id,
        (
            found[0].vm_state == vm_states.STOPPED
            and found[0].task_state is None
        ),
    )


def of_migrations(uuids: Collection[str]) -> dict[str, counted.Migration]:
    """The migrations among the uuids, also deleted ones.

    Nova deletes the migrations of a server with it.

    :raises oslo_messaging.MessagingException: Nova does not answer
    """
    if not uuids:
        return {}
    return {
        migration.uuid: counted.Migration(
            migration.instance_uuid,
            not migration.deleted
            and migration.status in nova_server.UNFINISHED,
        )
        for migration in objects.MigrationList.get_by_filters(
            nova_context.get_admin_context(read_deleted='yes'),
            {'uuid': sorted(uuids)},
        )
    }


def deleted(uuids: Collection[str]) -> frozenset[str]:
    """The uuids, among these, of instances that Nova has deleted.

    :raises oslo_messaging.MessagingException: Nova does not answer
    """
    if not uuids:
        return frozenset()
    return frozenset(
        instance.uuid
        for instance in objects.InstanceList.get_by_filters(
            nova_context.get_admin_context(read_deleted='yes'),
            {'uuid': sorted(uuids), 'deleted': True, 'soft_deleted': False},
            expected_attrs=[],
        )
    )


@dataclasses.dataclass(frozen=True)
class Owner:
    """Whose an instance is, and what Placement is to count of it.

    ``resources`` is what the flavor asks for, but for accelerators: resource
    class -> amount.
    """

    project_id: str
    user_id: str
    resources: Mapping[str, int]


def owner(uuid: str) -> Owner:
    """The owner of an existing instance.

    :raises Conflict: there is no such instance.
    :raises oslo_messaging.MessagingException: Nova does not answer
    """
    found = list(
        objects.InstanceList.get_by_filters(
            nova_context.get_admin_context(),
            {'uuid': [uuid], 'deleted': False, 'soft_deleted': True},
            expected_attrs=['flavor'],
        )
    )
    if not found:
        raise exceptions.Conflict(f'there is no server {uuid}')
    (instance,) = found
    return Owner(
        instance.project_id,
        instance.user_id,
        utils.resources_from_flavor(instance, instance.flavor),
    )
