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

"""The rows of accelerator requests (ARQs), for all ways to bind them.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import functools
from typing import Any
from typing import TypedDict
from typing import TypeVar

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.db.rows import demand_rows
from nova_accel.db.rows import handle_rows
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import pages
from nova_accel.db.rows import per_row
from nova_accel.db.rows import profile_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import schema
from nova_accel.db.sql import time_limits
from nova_accel.model import arq_types
from nova_accel.model import paging
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import handle_stock

_TABLE = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES
_HOSTS = schema.HOSTS


class ArqFacts(TypedDict):
    """An ARQ, and the attach handle that it has, if any."""

    uuid: str
    state: str
    device_profile_name: str
    device_profile_group_id: int
    group: dict[str, str]
    device_rp_uuid: str | None
    project_id: str | None
    role: str | None
    reason: str | None
    chosen_because: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    attach_handle_uuid: str | None
    attach_handle_type: str | None
    attach_handle_info: dict[str, Any] | None
    attach_handle_identity: str | None


class ArqRow(ArqFacts):
    """An ARQ that may be bound or not."""

    hostname: str | None
    instance_uuid: str | None


class BoundArqRow(ArqFacts):
    """An ARQ that has been bound."""

    hostname: str
    instance_uuid: str


class UnadoptedRow(TypedDict):
    """The columns that :func:`lock_unadopted` reads."""

    uuid: str
    project_id: str | None


class LockedRow(UnadoptedRow):
    """The columns that :func:`lock_existing` reads."""

    state: str
    resource_class: str
    hostname: str | None
    instance_uuid: str | None
    role: str | None


class HeldRow(LockedRow):
    """The columns that :func:`lock` reads, with the purpose of the ARQ."""

    device_profile_name: str
    device_profile_group_id: int
    group: dict[str, str]
    device_rp_uuid: str | None
    image_uuid: str | None


class _WithUuid(TypedDict):
    uuid: str


_R = TypeVar('_R')
_WithUuidT = TypeVar('_WithUuidT', bound=_WithUuid)

_NAMES = (
    'uuid',
    'device_profile_name',
    'device_profile_group_id',
    'group',
    'hostname',
    'device_rp_uuid',
    'instance_uuid',
    'project_id',
    'role',
    'reason',
    'chosen_because',
    'created_at',
    'updated_at',
)

#: The keys that ARQs can be sorted by, beside their state.
_SORT_COLUMNS = pages.columns(
    _TABLE,
    'uuid',
    'device_profile_name',
    'device_profile_group_id',
    'hostname',
    'device_rp_uuid',
    'instance_uuid',
    'project_id',
    'created_at',
    'updated_at',
)

SORT_KEYS = (*_SORT_COLUMNS, 'state')

_OF_HANDLE = (
    'attach_handle_uuid',
    'attach_handle_type',
    'attach_handle_info',
    'attach_handle_identity',
)

_OF_LOCKED = (
    'uuid',
    'state',
    'resource_class',
    'hostname',
    'instance_uuid',
    'role',
    'project_id',
)
_WHAT_FOR = (
    'device_profile_name',
    'device_profile_group_id',
    'group',
    'device_rp_uuid',
    'image_uuid',
)

_INSERTING = sa.insert(_TABLE)

#: The length of the column ``chosen_because``.
_MAX_BECAUSE = 255


def rows_of_profile(
    profile: profile_rows.RequestedProfile, **common: Any
) -> Iterator[dict[str, Any]]:
    """A row to insert for each unit of each group, in their order.

    :param profile: of :func:`nova_accel.db.rows.profile_rows.read_requested`
    :param common: further columns, the same in all rows
    :raises InvalidDeviceProfile: the profile is malformed
    """
    groups = device_profile.parse_groups(profile['groups'])
    for index, group in enumerate(groups):
        for resource_class in group.units():
            yield {
                'uuid': uuidutils.generate_uuid(),
                'device_profile_name': profile['name'],
                'device_profile_group_id': index,
                'group': profile['groups'][index],
                'resource_class': resource_class,
                'created_at': schema.now(),
                **common,
            }


def insert(
    connection: sa.Connection, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows of :func:`rows_of_profile`."""
    connection.execute(_INSERTING, rows)


def insert_bound(
    connection: sa.Connection,
    rows: Sequence[Mapping[str, Any]],
    allotted: handle_stock.Allotment,
    because: str = '',
) -> None:
    """Insert bound ARQs, and take the handles that are set aside for them.

    It comes last in a transaction, as :func:`demand_rows.count` does.

    :param because: stands before the reason why a handle was chosen
    :raises RetryRequest: as :func:`handle_rows.take`
    """
    bind_ms = time_limits.taken_ms()
    connection.execute(
        _INSERTING,
        [
            {
                **row,
                'chosen_because': reason.sanitize(
                    because + allotted.why[row['uuid']], _MAX_BECAUSE
                ),
                'bind_ms': bind_ms,
            }
            for row in rows
        ],
    )
    handle_rows.take(connection, allotted)
    demand_rows.count(connection, [row['group'] for row in rows])


def read(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> list[ArqRow]:
    """The ARQs in their stored states, oldest first."""
    return _read(connection, ArqRow, _TABLE.c.state, (), where, paging.ALL)


def read_bound(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> list[BoundArqRow]:
    """As :func:`read`.

    :param where: conditions that only bound ARQs meet
    """
    return _read(
        connection, BoundArqRow, _TABLE.c.state, (), where, paging.ALL
    )


def as_created(row: Mapping[str, Any]) -> ArqRow:
    """A row that was just inserted, as :func:`read` would give it.

    :param row: a row of :func:`rows_of_profile` that is not bound
    """
    return typed.row(
        ArqRow,
        {
            **dict.fromkeys((*_NAMES, *_OF_HANDLE)),
            **{name: row[name] for name in (*_NAMES, 'state') if name in row},
            'created_at': row['created_at'].replace(microsecond=0),
        },
    )


def read_derived(
    connection: sa.Connection,
    silence_s: int,
    states: Collection[arq_types.State] | None,
    reach: Sequence[sa.ColumnElement[bool]],
    *where: sa.ColumnElement[bool],
    page: paging.Page = paging.ALL,
) -> list[ArqRow]:
    """The ARQs, oldest first; bound ones of silent hosts are Unknown.

    :param silence_s: seconds without a report after which a host is silent
    :param states: only ARQs that read as being in one of these
    :param reach: conditions for the ARQs that the caller may know of
    :raises InvalidRequest: there is no such marker within the reach
    """
    state = derived_state(silence_s)
    if states is not None:
        where = (*where, state.in_([str(wanted) for wanted in states]))
    return _read(connection, ArqRow, state, reach, where, page)


def read_derived_by(
    connection: sa.Connection, silence_s: int, column: str, value: str
) -> list[ArqRow]:
    """As :func:`read_derived`, the ARQs that have a value in a column.

    :param column: ``uuid`` or ``instance_uuid``
    """
    return _rows(
        connection,
        ArqRow,
        _DERIVED_BY[column],
        value=value,
        silence_s=silence_s,
    )


def _read(
    connection: sa.Connection,
    kind: type[_R],
    state: sa.ColumnElement[str],
    reach: Sequence[sa.ColumnElement[bool]],
    where: Sequence[sa.ColumnElement[bool]],
    page: paging.Page,
) -> list[_R]:
    return pages.read(
        connection,
        kind,
        selected(state).where(*reach),
        where,
        page,
        _TABLE,
        {**_SORT_COLUMNS, 'state': state},
    )


def selected(state: sa.ColumnElement[str]) -> sa.Select[Any]:
    """A query of ARQs with their handles and hosts, for :class:`ArqFacts`."""
    return sa.select(
        *(_TABLE.c[name] for name in _NAMES),
        state.label('state'),
        _HANDLES.c.uuid.label('attach_handle_uuid'),
        _HANDLES.c.type.label('attach_handle_type'),
        _HANDLES.c.info.label('attach_handle_info'),
        _HANDLES.c.identity.label('attach_handle_identity'),
    ).select_from(
        _TABLE.outerjoin(_HANDLES).outerjoin(
            _HOSTS, _HOSTS.c.hostname == _TABLE.c.hostname
        )
    )


def derived_state(
    silence_s: int | sa.BindParameter[int],
) -> sa.ColumnElement[str]:
    """The state that an ARQ is shown in, for queries that have its host."""
    return sa.case(
        (
            sa.and_(
                _TABLE.c.state == arq_types.State.BOUND,
                host_rows.is_silent(silence_s),
            ),
            arq_types.State.UNKNOWN.value,
        ),
        else_=_TABLE.c.state,
    )


# SQLAlchemy takes longer to build a statement than to execute it. So those
# that each server needs are built once. They sort by the time first: to sort
# by the primary key alone, MariaDB may read the whole table.
_DERIVED_BY = {
    column: selected(
        derived_state(sa.bindparam('silence_s', type_=sa.Integer))
    )
    .where(_TABLE.c[column] == sa.bindparam('value'))
    .order_by(_TABLE.c.created_at, _TABLE.c.id)
    for column in ('uuid', 'instance_uuid')
}


def _locking(
    names: Iterable[str], *where: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    return (
        sa.select(*(_TABLE.c[name] for name in names))
        .where(*where)
        .order_by(_TABLE.c.uuid)
        .with_for_update()
    )


@functools.lru_cache
def locking(amount: int) -> sa.Select[Any]:
    """Locks so many ARQs, for :func:`lock_each`."""
    return _locking(_OF_LOCKED, per_row.is_one(_TABLE.c.uuid, amount))


@functools.lru_cache
def _deleting(amount: int) -> sa.Delete:
    return sa.delete(_TABLE).where(per_row.is_one(_TABLE.c.uuid, amount))


_LOCKING_UNADOPTED = _locking(
    ('uuid', 'project_id'),
    _TABLE.c.instance_uuid == sa.bindparam('instance_uuid'),
    _TABLE.c.role.is_(None),
)


def lock(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> list[HeldRow]:
    """Lock rows: others cannot change them until the transaction ends.

    They are locked in the order of their uuids. So two transactions that lock
    the same rows wait for each other and do not end in a deadlock.
    """
    return _rows(
        connection, HeldRow, _locking((*_OF_LOCKED, *_WHAT_FOR), *where)
    )


def lock_unadopted(
    connection: sa.Connection, instance_uuid: str
) -> list[UnadoptedRow]:
    """As :func:`lock`, the ARQs of an instance that no host has adopted.

    Only uuids and projects are read.
    """
    return _rows(
        connection,
        UnadoptedRow,
        _LOCKING_UNADOPTED,
        instance_uuid=instance_uuid,
    )


def lock_existing(
    connection: sa.Connection, uuids: Collection[str]
) -> list[LockedRow]:
    """As :func:`lock`, by uuid; ARQs that do not exist are left out.

    The purpose and the provider of an ARQ are not read.
    """
    return _rows(
        connection,
        LockedRow,
        locking(len(uuids)),
        **per_row.keys(_TABLE.c.uuid, uuids),
    )


def lock_each(
    connection: sa.Connection,
    uuids: Collection[str],
    kind: type[_WithUuidT],
    query: sa.Select[Any],
    **parameters: Any,
) -> list[_WithUuidT]:
    """As :func:`lock_existing`, but all of the ARQs must exist.

    :param kind: :class:`LockedRow`, or the TypedDict of another query's
        columns
    :param query: :func:`locking`, possibly with other columns
    :param parameters: the values that these columns need
    :raises NotFound: names the first that does not exist
    """
    rows = _rows(
        connection,
        kind,
        query,
        **per_row.keys(_TABLE.c.uuid, uuids),
        **parameters,
    )
    found = {row['uuid'] for row in rows}
    for uuid in uuids:
        if uuid not in found:
            raise not_found(uuid)
    return rows


def not_found(uuid: str) -> exceptions.NotFound:
    return exceptions.NotFound(f'ExtArq not found with uuid={uuid}')


def delete(connection: sa.Connection, uuids: Collection[str]) -> None:
    """Delete ARQs and free what they hold."""
    handle_rows.give_back(connection, uuids)
    connection.execute(
        _deleting(len(uuids)), per_row.keys(_TABLE.c.uuid, uuids)
    )


def _rows(
    connection: sa.Connection,
    kind: type[_R],
    query: sa.Select[Any],
    **parameters: Any,
) -> list[_R]:
    return typed.rows(kind, connection.execute(query, parameters))
