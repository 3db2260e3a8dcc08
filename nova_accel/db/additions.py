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

"""New ARQs beside those of a binding, which may have none.

The host gives back what it does not keep by
:func:`nova_accel.db.adoption.adopt`, once its guest has the new devices.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import client_bindings
from nova_accel.db.rows import fence
from nova_accel.db.rows import free_handles
from nova_accel.db.rows import project_quota
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types

_ARQS = schema.ARQS


@engine.retried
def add(
    key: fence.Key,
    attempt: int,
    project_id: str,
    wanted: Sequence[arq_types.WantedArq],
    kept: Collection[str] | None = None,
    limits_of_project: Mapping[str, int] | None = None,
) -> list[arq_rows.ArqRow]:
    """Bind new ARQs beside those of the binding, which stay bound.

    The same again changes nothing.

    :param kept: the uuids of the ARQs that the binding is to have besides, if
        the instance is to be counted
    :param limits_of_project: resource class -> how many units the project may
        have; only matters with ``kept``
    :returns: all ARQs of the binding
    :raises StaleAttempt: a newer attempt is known, or this one is released
    :raises FarAttempt: no host can have counted so far
    :raises OverQuota: the project may not have as many
    :raises NotFound: an ARQ is not of this binding, or there is no such
        provider
    :raises InvalidDeviceProfile: a group is malformed
    :raises AcceleratorsBusy: too few handles are free
    """
    with engine.writer() as connection:
        admitted = fence.admit(connection, key, attempt)
        if admitted is not fence.Admitted.REPEATED:
            held = (
                []
                if admitted is fence.Admitted.FIRST
                else arq_rows.lock(connection, *fence.where(_ARQS, key))
            )
            if kept is not None:
                project_quota.check(
                    connection,
                    project_id,
                    key,
                    limits_of_project or {},
                    _amounts(held, kept, wanted),
                )
            _bind(connection, _rows(key, project_id, wanted, held))
        return arq_rows.read(connection, *fence.where(_ARQS, key))


def _amounts(
    held: Sequence[arq_rows.HeldRow],
    kept: Collection[str],
    wanted: Sequence[arq_types.WantedArq],
) -> Mapping[str, int]:
    """Resource class -> how many units the binding is to have.

    :raises NotFound: it does not have an ARQ that it is to keep
    """
    classes = {row['uuid']: row['resource_class'] for row in held}
    for uuid in kept:
        if uuid not in classes:
            raise arq_rows.not_found(uuid)
    return collections.Counter(
        [
            *(classes[uuid] for uuid in kept),
            *(each.resource_class for each in wanted),
        ]
    )


def _rows(
    key: fence.Key,
    project_id: str,
    wanted: Sequence[arq_types.WantedArq],
    held: Sequence[arq_rows.HeldRow],
) -> dict[str, Any]:
    """Uuid -> the row to insert."""
    instance_uuid, hostname, role = key
    image_uuid = held[0]['image_uuid'] if held else None
    rows = {}
    for each in wanted:
        uuid = uuidutils.generate_uuid()
        rows[uuid] = {
            **each.to_dict(),
            'uuid': uuid,
            'state': arq_types.State.BOUND,
            'resource_class': each.resource_class,
            'project_id': project_id,
            'image_uuid': image_uuid,
            'hostname': hostname,
            'instance_uuid': instance_uuid,
            'role': role,
            'created_at': schema.now(),
        }
    return rows


def _bind(connection: sa.Connection, rows: dict[str, Any]) -> None:
    [asks] = client_bindings.asks(rows, rows).values()
    stock = free_handles.read(
        connection, [slot for ask in asks for slot in ask.slots]
    )
    arq_rows.insert_bound(connection, list(rows.values()), stock.allot(asks))
