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


"""The servers in the databases of Nova's cells."""

from collections.abc import Collection

from nova import conf as nova_conf
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.main import api as main_db

from nova_accel import exceptions
from nova_accel.model import drift


def connect() -> None:
    """Set up Nova's databases, as Nova's services do when they start.

    Nova's configuration must have been read.
    """
    main_db.configure(nova_conf.CONF)
    api_db.configure(nova_conf.CONF)
    objects.register_all()


def servers(uuids: Collection[str]) -> dict[str, drift.Server]:
    """The existing ones of the instances, by uuid.

    It takes two statements for each cell.

    Migrations are read first. If one ends meanwhile, the instance is already
    on the host where it stays.

    :raises ConfigurationError: Nova knows of no cell.
    """
    context = nova_context.get_admin_context()
    cells = objects.CellMappingList.get_all(context)
    if not cells:
        raise exceptions.ConfigurationError(
            '[api_database] connection: Nova has no cells there, so that all '
            'servers would look deleted'
        )
    migrating: set[str] = set()
    found = {}
    for cell in cells:
        with nova_context.target_cell(context, cell) as cell_context:
            migrating.update(
                migration.instance_uuid
                for migration in objects.MigrationList.get_by_filters(
                    cell_context, {'status': sorted(drift.UNFINISHED)}
                )
            )
    for cell in cells:
        with nova_context.target_cell(context, cell) as cell_context:
            found.update(
                {
                    instance.uuid: instance
                    for instance in objects.InstanceList.get_by_filters(
                        cell_context,
                        {
                            'uuid': sorted(uuids),
                            'deleted': False,
                            'soft_deleted': True,
                        },
                        expected_attrs=[],
                    )
                }
            )
    return {
        uuid: drift.Server(
            host=instance.host,
            vm_state=instance.vm_state,
            task_state=instance.task_state,
            is_migrating=uuid in migrating,
        )
        for uuid, instance in found.items()
    }
