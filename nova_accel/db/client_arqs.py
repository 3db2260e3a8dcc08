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

"""Accelerator requests as clients of Cyborg's API make and bind them.

An ARQ with a role is one that its host has acquired or adopted
(:mod:`nova_accel.db.host_arqs`). Such ARQs are read here and not changed: a
guest may use their devices, and only the host knows when it no longer does.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime

from oslo_log import log as logging
import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import client_bindings
from nova_accel.db.rows import demand_rows
from nova_accel.db.rows import free_handles
from nova_accel.db.rows import handle_rows
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import profile_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model import paging
from nova_accel.model.units import handle_stock

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_TABLE = schema.ARQS

#: The keys that ARQs can be sorted by.
SORT_KEYS = arq_rows.SORT_KEYS


class _ProfileToCreate(profile_rows.RequestedProfile):
    #: How many ARQs of the project are not bound, up to the most it may have.
    unbound: int


#: As :data:`nova_accel.db.rows.profile_rows.REQUESTED`, and how many ARQs of
#: the project ``project_id`` are not bound, up to ``most``.
_TO_CREATE = profile_rows.REQUESTED.add_columns(
    sa.select(sa.func.count())
    .select_from(
        sa.select(_TABLE.c.id)
        .where(
            _TABLE.c.project_id == sa.bindparam('project_id'),
            _TABLE.c.hostname.is_(None),
        )
        .limit(sa.bindparam('most', type_=sa.Integer))
        .subquery('unbound'),
    )
    .scalar_subquery()
    .label('unbound')
)


@engine.retried
def create(
    profile_name: str, project_id: str, image_uuid: str | None = None
) -> list[arq_rows.ArqRow]:
    """Make one ARQ for each unit of each group of the profile, in this order.

    :raises NotFound: there is no such profile
    :raises NotAllowed: the project would have too many unbound ARQs
    """
    most = CONF.nova_accel.max_unbound_arqs
    with engine.writer() as connection:
        profile, unbound = _read_profile(
            connection, profile_name, project_id, most
        )
        rows = list(
            arq_rows.rows_of_profile(
                profile,
                state=arq_types.State.INITIAL,
                project_id=project_id,
                image_uuid=image_uuid,
            )
        )
        if most and unbound + len(rows) > most:
            raise exceptions.NotAllowed(
                f'project {project_id} has {unbound} of at most {most} '
                f'unbound accelerator requests, and asks for {len(rows)} '
                'more: delete those that no one needs'
            )
        arq_rows.insert(connection, rows)
    return [arq_rows.as_created(row) for row in rows]


def _read_profile(
    connection: sa.Connection,
    name: str,
    project_id: str,
    most: int,
) -> tuple[profile_rows.RequestedProfile, int]:
    """The profile; and how many ARQs of the project are not bound.

    :param most: where the count ends; 0 if nothing is to be counted
    """
    if not most:
        return profile_rows.read_requested(
            connection,
            name,
            profile_rows.RequestedProfile,
            profile_rows.REQUESTED,
        ), 0
    profile = profile_rows.read_requested(
        connection,
        name,
        _ProfileToCreate,
        _TO_CREATE,
        project_id=project_id,
        most=most,
    )
    return profile, profile['unbound']


@engine.retried
def get(uuid: str, project_id: str | None = None) -> arq_rows.ArqRow:
    """:raises NotFound: there is no such ARQ, or it is another project's"""
    with engine.reader() as connection:
        found = arq_rows.read_derived_by(
            connection, CONF.nova_accel.host_silence_s, 'uuid', uuid
        )
    if not found or project_id not in (None, found[0]['project_id']):
        raise arq_rows.not_found(uuid)
    return found[0]


@engine.retried
def get_by_uuids(
    uuids: Collection[str],
    project_id: str | None = None,
) -> list[arq_rows.ArqRow]:
    """The ARQs that exist, in their stored states, oldest first."""
    with engine.reader() as connection:
        return arq_rows.read(
            connection,
            *_of_project(project_id),
            _TABLE.c.uuid.in_(list(uuids)),
        )


@engine.retried
def get_of_instance(instance_uuid: str) -> list[arq_rows.ArqRow]:
    """The ARQs of an instance, of any project, oldest first."""
    with engine.reader() as connection:
        return arq_rows.read_derived_by(
            connection,
            CONF.nova_accel.host_silence_s,
            'instance_uuid',
            instance_uuid,
        )


@engine.retried
def get_all(
    project_id: str | None = None,
    states: Collection[arq_types.State] | None = None,
    page: paging.Page = paging.ALL,
    **equal: str | None,
) -> list[arq_rows.ArqRow]:
    """The ARQs that match all arguments, oldest first.

    :param states: only ARQs that read as one of these
    :param equal: instance_uuid or hostname; None matches any
    :raises InvalidRequest: the project has no such marker
    """
    with engine.reader() as connection:
        return arq_rows.read_derived(
            connection,
            CONF.nova_accel.host_silence_s,
            states,
            _of_project(project_id),
            *(
                _TABLE.c[name] == value
                for name, value in equal.items()
                if value is not None
            ),
            page=page,
        )


@engine.retried
def get_forgotten(age: datetime.timedelta) -> list[arq_rows.ArqRow]:
    """Unbound ARQs that have not changed for this long, oldest first.

    An unbound ARQ that has a handle is given at any age, since no one can use
    that handle.
    """
    changed_at = sa.func.coalesce(_TABLE.c.updated_at, _TABLE.c.created_at)
    with engine.reader() as connection:
        return arq_rows.read(
            connection,
            _TABLE.c.hostname.is_(None),
            sa.or_(
                changed_at < schema.now() - age,
                schema.ATTACH_HANDLES.c.uuid.is_not(None),
            ),
        )


@engine.retried
def bind(
    bindings: client_bindings.Bindings, read: bool = True
) -> list[arq_rows.ArqRow]:
    """Bind ARQs to what was allocated; afterwards all of them are resolved.

    An instance gets a handle for each of its ARQs, or no handle at all.
    Without handles its ARQs become BindFailed, and the reason is logged. The
    same happens if the host is silent.

    :param read: whether to return the ARQs, which takes one more statement
    :returns: the ARQs as they are afterwards; empty without ``read``
    :raises NotFound: names an ARQ, a host or a provider that does not exist
    :raises Conflict: other bindings were first, again and again
    :raises InvalidRequest: an instance has ARQs of an earlier binding
    :raises InvalidTransition: an ARQ cannot be bound in its present state
    """
    with engine.writer() as connection:
        rows = client_bindings.lock(connection, bindings)
        allotted, failed = _allot(
            connection, client_bindings.asks(rows, bindings)
        )
        client_bindings.write(connection, rows, bindings, allotted.why, failed)
        handle_rows.take(connection, allotted)
        order_rows.tell_of_bindings(
            connection, {each['hostname'] for each in bindings.values()}
        )
        found = (
            arq_rows.read(connection, _TABLE.c.uuid.in_(list(bindings)))
            if read
            else []
        )
        demand_rows.count(
            connection, [rows[uuid]['group'] for uuid in allotted.why]
        )
    for uuid, fault in failed.items():
        LOG.warning(
            'ARQ %s of instance %s is %s: %s',
            uuid,
            bindings[uuid]['instance_uuid'],
            arq_types.State.BIND_FAILED,
            fault,
        )
    return found


def _allot(
    connection: sa.Connection, asks: Mapping[str, list[handle_stock.Ask]]
) -> tuple[handle_stock.Allotment, dict[str, exceptions.AcceleratorsBusy]]:
    """The units set aside; and ARQ uuid -> why it gets none.

    :param asks: instance uuid -> what it asks for
    """
    silence_s = CONF.nova_accel.host_silence_s
    slots = [
        slot
        for of_one in asks.values()
        for ask in of_one
        for slot in ask.slots
    ]
    try:
        stock = free_handles.read(connection, slots)
    except exceptions.NotFound:
        host_rows.check_known(connection, {slot.hostname for slot in slots})
        raise
    silent = stock.silent_hosts(silence_s)
    allotted = handle_stock.Allotment({}, {}, {})
    failed: dict[str, exceptions.AcceleratorsBusy] = {}
    for of_one in asks.values():
        try:
            for hostname in silent & {ask.hostname for ask in of_one}:
                raise exceptions.AcceleratorsBusy(
                    f'host {hostname} has not reported for {silence_s} s'
                )
            found = stock.allot(of_one)
        except exceptions.AcceleratorsBusy as fault:
            failed |= {uuid: fault for ask in of_one for uuid in ask.arqs}
        else:
            allotted.arqs.update(found.arqs)
            allotted.why.update(found.why)
            allotted.cards.update(found.cards)
    return allotted, failed


@engine.retried
def unbind(uuids: Collection[str]) -> None:
    """Take ARQs from their instances; an Unbound one stays as it is.

    :raises NotFound: names an ARQ
    :raises Conflict: an ARQ is held by its host, or cannot be unbound in its
        present state
    """
    with engine.writer() as connection:
        rows = [
            row
            for row in arq_rows.lock_each(
                connection,
                uuids,
                arq_rows.LockedRow,
                arq_rows.locking(len(uuids)),
            )
            if row['state'] != arq_types.State.UNBOUND
        ]
        _check_not_of_host(rows)
        for row in rows:
            arq_types.check_transition(
                row['uuid'],
                arq_types.State(row['state']),
                arq_types.State.UNBOUND,
            )
        bound = [row['uuid'] for row in rows]
        handle_rows.give_back(connection, bound)
        connection.execute(
            sa.update(_TABLE)
            .where(_TABLE.c.uuid.in_(bound))
            .values(
                state=arq_types.State.UNBOUND,
                updated_at=schema.now(),
                position=None,
                reason=None,
                chosen_because=None,
                bind_ms=None,
                **dict.fromkeys(client_bindings.PLACE),
            )
        )


@engine.retried
def delete_by_uuids(
    uuids: Collection[str],
    project_id: str | None = None,
    bound_allowed: bool = False,
) -> None:
    """Delete all of the ARQs or none.

    Nova deletes the ARQs of an instance first, and then by uuid all that it
    has made. It asks only once. So missing ARQs are no fault for Nova, unless
    all of them are missing.

    :param bound_allowed: whether the caller may delete bound ARQs, as Nova may
    :raises NotFound: names an ARQ that does not exist, or is another project's
    :raises Conflict: an instance or a host has one of the ARQs
    """
    with engine.writer() as connection:
        rows = [
            row
            for row in arq_rows.lock_existing(connection, uuids)
            if project_id in (None, row['project_id'])
        ]
        found = {row['uuid'] for row in rows}
        missing = [uuid for uuid in uuids if uuid not in found]
        if missing and not (found and bound_allowed):
            raise arq_rows.not_found(missing[0])
        for row in rows:
            if row['instance_uuid'] is not None and not bound_allowed:
                raise exceptions.Conflict.for_all(
                    f'ARQ {row["uuid"]} is bound to instance '
                    f'{row["instance_uuid"]}. Use the Compute API to manage '
                    'instance accelerators.'
                )
        _check_not_of_host(rows)
        arq_rows.delete(connection, found)


@engine.retried
def delete_by_instance(
    instance_uuid: str, project_id: str | None = None
) -> None:
    """Delete the ARQs that :func:`bind` gave to the instance, if any."""
    with engine.writer() as connection:
        arq_rows.delete(
            connection,
            [
                row['uuid']
                for row in arq_rows.lock_unadopted(connection, instance_uuid)
                if project_id in (None, row['project_id'])
            ],
        )


def _of_project(project_id: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if project_id is None else (_TABLE.c.project_id == project_id,)


def _check_not_of_host(rows: Sequence[arq_rows.LockedRow]) -> None:
    for row in rows:
        if row['role'] is not None:
            freed = (
                f'instance {row["instance_uuid"]}; it is freed with the '
                'instance'
            )
            raise exceptions.Conflict(
                f'ARQ {row["uuid"]} is held by host {row["hostname"]} for '
                f'{freed}',
                public=f'ARQ {row["uuid"]} is held for {freed}',
            )
