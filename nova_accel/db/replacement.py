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

"""New ARQs beside those of a binding whose devices have failed.

The host gives the failed ones back by :func:`nova_accel.db.host_arqs.adopt`,
once its guest has the new devices.
"""

from collections.abc import Mapping
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import client_bindings
from nova_accel.db.rows import fence
from nova_accel.db.rows import free_handles
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import typed
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types

CONF = conf.CONF

_ARQS = schema.ARQS
_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


class HeldUnitRow(host_rows.HostState):
    """An ARQ that a server holds, and the state of its unit and its host."""

    uuid: str
    service_host: str
    contract: int
    has_failed: bool


@engine.retried
def add(
    key: fence.Key, attempt: int, wanted: Mapping[str, str]
) -> list[arq_rows.ArqRow]:
    """Bind a new ARQ beside each named one, which stays bound.

    The same again changes nothing. The limits of the project do not matter:
    the server soon has as many as before.

    :param wanted: uuid of an ARQ of the binding -> uuid of the provider of
        which the new one is to have a unit
    :returns: all ARQs of the binding
    :raises StaleAttempt: a newer attempt is known, or this one is released
    :raises FarAttempt: no host can have counted so far
    :raises NotFound: an ARQ is not of this binding, or there is no such
        provider
    :raises AcceleratorsBusy: too few handles are free
    """
    with engine.writer() as connection:
        admitted = fence.admit(connection, key, attempt)
        if admitted is not fence.Admitted.REPEATED:
            _add(connection, key, wanted)
        return arq_rows.read(connection, *fence.where(_ARQS, key))


@engine.retried
def get_held(
    instance_uuid: str, project_id: str | None = None
) -> list[HeldUnitRow]:
    """The ARQs that a server holds for its guest, and which have failed.

    :param project_id: the only project whose ARQs count; None for any
    """
    query = (
        sa.select(
            _ARQS.c.uuid,
            _DEVICES.c.hostname,
            _HOSTS.c.service_host,
            _HOSTS.c.contract,
            host_rows.is_silent(CONF.nova_accel.host_silence_s).label(
                'is_silent'
            ),
            unit_states.has_failed().label('has_failed'),
        )
        .select_from(
            _ARQS.join(_HANDLES).join(_DEPLOYABLES).join(_DEVICES).join(_HOSTS)
        )
        .where(
            _ARQS.c.instance_uuid == instance_uuid,
            _ARQS.c.role == arq_types.Role.ACTIVE,
        )
        .order_by(_ARQS.c.id)
    )
    if project_id is not None:
        query = query.where(_ARQS.c.project_id == project_id)
    with engine.reader() as connection:
        return typed.rows(HeldUnitRow, connection.execute(query))


def _add(
    connection: sa.Connection, key: fence.Key, wanted: Mapping[str, str]
) -> None:
    held = {
        row['uuid']: row
        for row in arq_rows.lock(connection, *fence.where(_ARQS, key))
    }
    rows: dict[str, Any] = {}
    for uuid, rp_uuid in wanted.items():
        if uuid not in held:
            raise arq_rows.not_found(uuid)
        new_uuid = uuidutils.generate_uuid()
        rows[new_uuid] = {
            **held[uuid],
            'uuid': new_uuid,
            'state': arq_types.State.BOUND,
            'device_rp_uuid': rp_uuid,
            'created_at': schema.now(),
        }
    asks = client_bindings.asks(rows, rows)[key[0]]
    stock = free_handles.read(
        connection, [slot for ask in asks for slot in ask.slots]
    )
    arq_rows.insert_bound(connection, list(rows.values()), stock.allot(asks))
