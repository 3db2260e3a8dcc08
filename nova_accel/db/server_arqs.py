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

"""The accelerators of servers, and whether they work."""

from collections.abc import Collection
import datetime
from typing import Any
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import lease
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import typed
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model.units import unit_health
from nova_accel.model.units import unit_state

CONF = conf.CONF

_ARQS = schema.ARQS
_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_HANDLES = schema.ATTACH_HANDLES

_State = unit_state.UnitState


class DrainRow(TypedDict):
    """The drain of the host, as it was announced."""

    begin: datetime.datetime
    until: datetime.datetime | None
    reason: str | None


class HealthRow(TypedDict):
    """The health of the unit that an ARQ has; ``since`` is when it began.

    That is the first report of a fault, or the last report of a silent host.
    It is None where no one knows.
    """

    uuid: str
    health: unit_health.Verdict
    since: datetime.datetime | None


class ServerArqRow(HealthRow):
    """An ARQ whose unit a server has."""

    project_id: str | None
    device_profile_name: str
    device_profile_group_id: int
    resource_class: str
    state: str
    is_leaving: bool
    drain: DrainRow | None


class HeldUnitRow(host_rows.HostState):
    """An ARQ that a server holds, and the state of its unit and its host."""

    uuid: str
    project_id: str | None
    service_host: str
    contract: int
    has_failed: bool


#: The name of the lease of the call that changes a server, before its uuid.
CHANGING = 'changing '

_SILENCE_S: sa.BindParameter[int] = sa.bindparam('silence_s', type_=sa.Integer)

_HELD = (
    _ARQS.join(_HANDLES).join(schema.DEPLOYABLES).join(_DEVICES).join(_HOSTS)
)
_JUDGED = (
    _HANDLES.c.present,
    _DEVICES.c.fault,
    _DEVICES.c.faulted_at,
    _HOSTS.c.reported_at,
    host_rows.is_silent(_SILENCE_S).label('is_silent'),
    lease.is_held(
        sa.literal(CHANGING) + _ARQS.c.instance_uuid,
        sa.bindparam('change_s', type_=sa.Integer),
    ).label('is_changed'),
)
_IS_OF_SERVER = _ARQS.c.instance_uuid == sa.bindparam('instance_uuid')

# SQLAlchemy takes longer to build a statement than to execute it.
_OF_SERVER = (
    sa.select(
        *(
            _ARQS.c[name]
            for name in (
                'uuid',
                'project_id',
                'device_profile_name',
                'device_profile_group_id',
                'resource_class',
                'is_leaving',
            )
        ),
        arq_rows.derived_state(_SILENCE_S).label('state'),
        *_JUDGED,
        _HOSTS.c.drained_at,
        _HOSTS.c.drained_from,
        _HOSTS.c.drained_until,
        _HOSTS.c.drain_reason,
    )
    .select_from(_HELD)
    .where(
        _IS_OF_SERVER,
        sa.or_(_ARQS.c.role.is_(None), _ARQS.c.role.in_(arq_types.OF_GUEST)),
    )
    .order_by(_ARQS.c.created_at, _ARQS.c.id)
)

_OF_ARQS = (
    sa.select(_ARQS.c.uuid, *_JUDGED)
    .select_from(_HELD)
    .where(_ARQS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
)

_UNITS = (
    sa.select(
        _ARQS.c.uuid,
        _ARQS.c.project_id,
        _DEVICES.c.hostname,
        _HOSTS.c.service_host,
        _HOSTS.c.contract,
        host_rows.is_silent(_SILENCE_S).label('is_silent'),
        sa.and_(unit_states.has_failed(), sa.not_(_ARQS.c.is_leaving)).label(
            'has_failed'
        ),
    )
    .select_from(_HELD)
    .where(_IS_OF_SERVER, _ARQS.c.role == arq_types.Role.ACTIVE)
    .order_by(_ARQS.c.created_at, _ARQS.c.id)
)


def get(
    instance_uuid: str, project_id: str | None = None
) -> list[ServerArqRow]:
    """The ARQs whose units a server has, oldest first, by one statement.

    :param project_id: the only project whose ARQs the caller reaches
    :raises NotFound: the server has none, or is another project's
    """
    found = [
        _to_row(row) for row in _read(_OF_SERVER, instance_uuid, project_id)
    ]
    if not found:
        raise exceptions.NotFound(
            f'Server {instance_uuid} has no accelerators'
        )
    return found


@engine.retried
def get_health(uuids: Collection[str]) -> dict[str, HealthRow]:
    """The health of the units that some ARQs have, by one statement.

    ARQs without a unit are left out.
    """
    if not uuids:
        return {}
    with engine.reader() as connection:
        found = connection.execute(
            _OF_ARQS, {'uuids': list(uuids), **_now()}
        ).all()
    return {row.uuid: _judge(row) for row in found}


def get_held(
    instance_uuid: str, project_id: str | None = None
) -> list[HeldUnitRow]:
    """The ARQs that a server holds for its guest, and which have failed.

    One that the server gives back anyway has not.

    :param project_id: the only project whose ARQs count; None for any
    """
    return [
        typed.row(HeldUnitRow, row._mapping)
        for row in _read(_UNITS, instance_uuid, project_id)
    ]


@engine.retried
def _read(
    query: sa.Select[Any], instance_uuid: str, project_id: str | None
) -> list[sa.Row[Any]]:
    with engine.reader() as connection:
        found = connection.execute(
            query,
            {'instance_uuid': instance_uuid, **_now()},
        )
        return [row for row in found if project_id in (None, row.project_id)]


def _now() -> dict[str, int]:
    return {
        'silence_s': CONF.nova_accel.host_silence_s,
        'change_s': CONF.long_rpc_timeout,
    }


def _judge(row: sa.Row[Any]) -> HealthRow:
    is_silent = bool(row.is_silent)
    state = unit_state.Condition(
        is_present=row.present, fault=row.fault, is_silent=is_silent
    ).state()
    return {
        'uuid': row.uuid,
        'health': unit_health.verdict(state, row.is_changed),
        'since': {
            _State.HOST_SILENT: row.reported_at,
            _State.FAULTY: row.faulted_at,
        }.get(state),
    }


def _to_row(row: sa.Row[Any]) -> ServerArqRow:
    return {
        **_judge(row),
        'project_id': row.project_id,
        'device_profile_name': row.device_profile_name,
        'device_profile_group_id': row.device_profile_group_id,
        'resource_class': row.resource_class,
        'state': row.state,
        'is_leaving': row.is_leaving,
        'drain': _drain(row),
    }


def _drain(row: sa.Row[Any]) -> DrainRow | None:
    begin = row.drained_at or row.drained_from
    if begin is None:
        return None
    return {
        'begin': begin,
        'until': row.drained_until,
        'reason': row.drain_reason,
    }
