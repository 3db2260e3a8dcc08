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

"""The ARQs whose units guests have, and whether these units work."""

from collections.abc import Collection
from collections.abc import Set

import sqlalchemy as sa

from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model.units import unit_health
from nova_accel.model.units import unit_state

_TABLE = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES


class JudgedRow(arq_rows.BoundArqRow):
    """An ARQ whose unit a guest has, and whether the guest can use it."""

    device_uuid: str
    is_faulty: bool
    is_present: bool
    health: unit_health.Verdict


def read(
    connection: sa.Connection, hostnames: Collection[str]
) -> list[JudgedRow]:
    """The ARQs whose units guests on some hosts have, oldest first.

    They are judged as if their hosts reported.
    """
    query = (
        arq_rows.selected(_TABLE.c.state)
        .add_columns(
            _DEVICES.c.uuid.label('device_uuid'),
            _DEVICES.c.fault.is_not(None).label('is_faulty'),
            _HANDLES.c.present.label('is_present'),
        )
        .join(_DEPLOYABLES, _DEPLOYABLES.c.uuid == _HANDLES.c.deployable_uuid)
        .join(_DEVICES, _DEVICES.c.uuid == _DEPLOYABLES.c.device_uuid)
        .where(
            _TABLE.c.hostname.in_(list(hostnames)),
            _TABLE.c.instance_uuid.is_not(None),
            _TABLE.c.role.in_(arq_types.OF_GUEST),
        )
        .order_by(_TABLE.c.created_at, _TABLE.c.id)
    )
    return [
        typed.row(
            JudgedRow,
            {
                **row,
                'health': unit_health.verdict(
                    _state(row['is_faulty'], row['is_present'])
                ),
            },
        )
        for row in connection.execute(query).mappings()
    ]


def read_working(
    connection: sa.Connection, hostnames: Collection[str]
) -> list[JudgedRow]:
    """As :func:`read`, those that work. Without hosts, it is no statement."""
    return [
        arq
        for arq in (read(connection, hostnames) if hostnames else ())
        if arq['health'].health is unit_health.Health.HEALTHY
    ]


def read_turned(
    connection: sa.Connection,
    hostname: str,
    device_uuids: Set[str],
    handle_uuids: Set[str],
) -> list[JudgedRow]:
    """The ARQs of a host whose units have just failed, or just work again.

    It is one statement, whatever has changed, and none if nothing has.

    :param device_uuids: those that have got a fault or lost it
    :param handle_uuids: those that are gone now or are back
    """
    if not device_uuids and not handle_uuids:
        return []
    found = []
    for arq in read(connection, [hostname]):
        before = _state(
            arq['is_faulty'] is not (arq['device_uuid'] in device_uuids),
            arq['is_present']
            is not (arq['attach_handle_uuid'] in handle_uuids),
        )
        if unit_health.verdict(before).health is not arq['health'].health:
            found.append(arq)
    return found


def _state(is_faulty: bool, is_present: bool) -> unit_state.UnitState:
    return unit_state.Condition(
        is_present=is_present, fault='' if is_faulty else None
    ).state()
