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

"""The ARQs whose units guests have, and whether their devices have failed."""

from collections.abc import Collection

import sqlalchemy as sa

from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import schema
from nova_accel.model import arq_types

_TABLE = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES


class JudgedRow(arq_rows.BoundArqRow):
    """An ARQ whose unit a guest has, and whether its device has failed."""

    has_failed: bool


def read(
    connection: sa.Connection, hostname: str, device_uuids: Collection[str]
) -> list[JudgedRow]:
    """The ARQs whose units of a host's devices guests have, oldest first.

    A unit that is gone does not work again with its device. It is left out.
    """
    has_failed = _DEVICES.c.fault.is_not(None)
    query = (
        arq_rows.selected(_TABLE.c.state)
        .add_columns(has_failed.label('has_failed'))
        .join(_DEPLOYABLES, _DEPLOYABLES.c.uuid == _HANDLES.c.deployable_uuid)
        .join(_DEVICES, _DEVICES.c.uuid == _DEPLOYABLES.c.device_uuid)
        .where(
            _TABLE.c.hostname == hostname,
            _DEVICES.c.uuid.in_(list(device_uuids)),
            _TABLE.c.instance_uuid.is_not(None),
            _TABLE.c.role.in_(arq_types.OF_GUEST),
            sa.or_(_HANDLES.c.present, has_failed),
        )
        .order_by(_TABLE.c.created_at, _TABLE.c.id)
    )
    return typed.rows(JudgedRow, connection.execute(query))
