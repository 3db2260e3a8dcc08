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

"""The servers and compute nodes in the databases of Nova's cells."""

from collections.abc import Collection
from collections.abc import Iterator
import contextlib
from typing import Any

from nova import conf as nova_conf
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.db.main import models
from nova.objects import fields
from oslo_db import exception as db_exc
import oslo_messaging as messaging
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.sql import database_url
from nova_accel.model import nova_server
from nova_accel.model.cyborg import hosts
from nova_accel.model.fleet import fleet_sources

_GIVEN_AWAY = (
    fields.PciDeviceStatus.CLAIMED,
    fields.PciDeviceStatus.ALLOCATED,
)


def connect() -> None:
    """Set up Nova's databases, as Nova's services do when they start.

    Nova's configuration must have been read.
    """
    for group in ('api_database', 'database'):
        # By default oslo.db tries ten times before it says what is wrong,
        # with ten seconds in between.
        nova_conf.CONF.set_default('max_retries', 0, group)
    # The mapping of a cell refers to an option that Nova registers with RPC.
    messaging.TransportURL.parse(nova_conf.CONF)
    main_db.configure(nova_conf.CONF)
    api_db.configure(nova_conf.CONF)
    objects.register_all()


def servers(uuids: Collection[str]) -> dict[str, nova_server.Server]:
    """The existing ones of the instances, by uuid.

    It takes two statements for each cell.

    :raises ConfigurationError: Nova knows of no cell.
    :raises ServiceUnavailable: a database of Nova's does not answer.
    """
    context = nova_context.get_admin_context()
    migrating, found = _moves_and_instances(context, uuids, [])
    moving = {*migrating.values()}
    return {
        uuid: nova_server.Server(
            host=instance.host,
            vm_state=instance.vm_state,
            task_state=instance.task_state,
            is_migrating=uuid in moving,
        )
        for uuid, instance in found.items()
    }


def compute_nodes() -> list[hosts.CyborgNode]:
    """All compute nodes, by one statement for each cell.

    :raises ConfigurationError: Nova knows of no cell.
    """
    context = nova_context.get_admin_context()
    found = []
    for cell in _cells(context):
        with nova_context.target_cell(context, cell) as cell_context:
            found += _compute_nodes(cell_context)
    return found


def read(uuids: Collection[str]) -> fleet_sources.NovaReading:
    """Nova's words about the instances, moves and its PCI devices.

    It takes three statements for each cell, and one for all.

    :param uuids: of instances, or of other consumers in Placement
    :raises ConfigurationError: Nova knows of no cell.
    :raises ServiceUnavailable: a database of Nova's does not answer.
    """
    context = nova_context.get_admin_context()
    migrating, found = _moves_and_instances(context, uuids, ['flavor'])
    moving = {*migrating.values()}
    passed_through = {}
    for cell in _cells(context):
        with _of_cell(context, cell) as cell_context:
            passed_through.update(_passed_through(cell_context))
    return fleet_sources.NovaReading(
        servers={
            uuid: fleet_sources.FleetServer(
                host=instance.host,
                vm_state=instance.vm_state,
                task_state=instance.task_state,
                is_migrating=uuid in moving,
                name=instance.display_name or '',
                flavor=instance.flavor.name,
                image=instance.image_ref or '',
            )
            for uuid, instance in found.items()
        },
        consumers={
            *migrating,
            *_in_no_cell(context, set(uuids).difference(found)),
        },
        passed_through=passed_through,
    )


def _cells(context: Any) -> Any:
    """All cells of Nova.

    :raises ConfigurationError: they are not configured, or there is none.
    :raises ServiceUnavailable: their database does not answer.
    """
    url = nova_conf.CONF.api_database.connection
    if not url:
        raise exceptions.ConfigurationError(
            '[api_database] connection is not set: it names the database of '
            "Nova's API, which has the cells. Run the command with the "
            'configuration of nova-api'
        )
    with _answering("Nova's API ([api_database] connection)", url):
        cells = objects.CellMappingList.get_all(context)
    if not cells:
        raise exceptions.ConfigurationError(
            '[api_database] connection: Nova has no cells there, so that all '
            'servers would look deleted'
        )
    return cells


@contextlib.contextmanager
def _of_cell(context: Any, cell: Any) -> Iterator[Any]:
    """The context for the database of a cell.

    :raises ServiceUnavailable: it does not answer.
    """
    with (
        _answering(f'cell {cell.name or cell.uuid}', cell.database_connection),
        nova_context.target_cell(context, cell) as cell_context,
    ):
        yield cell_context


@contextlib.contextmanager
def _answering(whose: str, url: str) -> Iterator[None]:
    """Say which database does not answer the body.

    :raises ConfigurationError: of its URL no one could tell the server.
    :raises ServiceUnavailable: it does not answer.
    """
    server = ''
    # Nova's own fixtures name the databases of cells otherwise.
    if '://' in url:
        server = database_url.server(
            database_url.parse(url, f'the URL of the database of {whose}')
        )
    try:
        yield
    except (db_exc.DBConnectionError, db_exc.CantStartEngineError) as fault:
        raise exceptions.ServiceUnavailable(
            f'the database of {whose}{f" on {server}" if server else ""} does '
            'not answer: check that it runs, and can be reached from here'
        ) from fault


def _moves_and_instances(
    context: Any, uuids: Collection[str], expected: list[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Unfinished migrations, and the existing ones of the instances.

    Migrations are read first. If one ends meanwhile, the instance is already
    on the host where it stays.

    :param expected: further attributes of instances
    :returns: migration uuid -> instance uuid; instance uuid -> instance
    """
    cells = _cells(context)
    migrating: dict[str, str] = {}
    found: dict[str, Any] = {}
    for cell in cells:
        with _of_cell(context, cell) as cell_context:
            migrating.update(
                (migration.uuid, migration.instance_uuid)
                for migration in objects.MigrationList.get_by_filters(
                    cell_context, {'status': sorted(nova_server.UNFINISHED)}
                )
            )
    for cell in cells:
        with _of_cell(context, cell) as cell_context:
            found.update(
                (instance.uuid, instance)
                for instance in objects.InstanceList.get_by_filters(
                    cell_context,
                    {
                        'uuid': sorted(uuids),
                        'deleted': False,
                        'soft_deleted': True,
                    },
                    expected_attrs=expected,
                )
            )
    return migrating, found


def _in_no_cell(context: Any, uuids: Collection[str]) -> Iterator[str]:
    """The instances that Nova is about to create."""
    if not uuids:
        return
    for mapping in objects.InstanceMappingList.get_by_instance_uuids(
        context, sorted(uuids)
    ):
        if not mapping.queued_for_delete:
            yield mapping.instance_uuid


@main_db.pick_context_manager_reader
def _passed_through(context: Any) -> dict[tuple[str, str], str]:
    """The functions that Nova's PCI tracker has given away in a cell.

    :returns: (hypervisor, PCI address) -> instance uuid
    """
    device, node = models.PciDevice, models.ComputeNode
    return {
        (hostname, address): uuid
        for hostname, address, uuid in context.session.execute(
            sa.select(
                node.hypervisor_hostname, device.address, device.instance_uuid
            )
            .join(node, node.id == device.compute_node_id)
            .where(
                device.deleted == 0,
                node.deleted == 0,
                device.status.in_(_GIVEN_AWAY),
                device.instance_uuid.is_not(None),
            )
        )
    }


@main_db.pick_context_manager_reader
def _compute_nodes(context: Any) -> list[hosts.CyborgNode]:
    node = models.ComputeNode
    return [
        hosts.CyborgNode(*row)
        for row in context.session.execute(
            sa.select(node.uuid, node.hypervisor_hostname, node.host).where(
                node.deleted == 0
            )
        )
    ]
