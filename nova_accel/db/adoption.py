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

"""Giving ARQs that are bound already to a binding of a host.

Nova's own Cyborg client has bound them, or the host holds them in another
role, or in this one and keeps only them.
"""

import collections
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import fence
from nova_accel.db.rows import per_row
from nova_accel.db.rows import project_quota
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model import host_binding

_ARQS = schema.ARQS


@engine.retried
def adopt(
    key: fence.Key,
    attempt: int,
    uuids: Collection[str],
    from_role: str | None = None,
    limits_of_project: Mapping[str, int] | None = None,
    names: Mapping[str, Mapping[str, Any]] | None = None,
    leaving: Collection[str] = (),
) -> list[arq_rows.ArqRow]:
    """Give ARQs that the instance has on the host to a binding.

    The same again changes nothing. A newer attempt deletes the ARQs of the
    binding that it does not name.

    :param uuids: of ARQs that Nova's Cyborg client has bound, or that the
        binding has and keeps
    :param from_role: the role that the host moves the ARQs from, if it does.
        All attempts at this role up to this one are then over. The ARQs may be
        in any role, as the host may not have told of all its moves.
    :param limits_of_project: as for :func:`acquire`
    :param names: uuid -> the ``device_profile_name`` and the
        ``device_profile_group_id`` that the ARQ has from now on
    :param leaving: of further ARQs, of which the guest has not let go
    :returns: the ARQs, all Bound
    :raises OverQuota: the project may not have as many
    :raises StaleAttempt: a newer attempt is known, or this one is released,
        or was another request's
    :raises FarAttempt: no host can have counted so far
    :raises NotFound: names an ARQ
    :raises Conflict: an ARQ is not Bound, or not the instance's on the host
    """
    with engine.writer() as connection:
        admitted = fence.admit(connection, key, attempt)
        if admitted is not fence.Admitted.REPEATED:
            if from_role is not None:
                fence.close(connection, (*key[:2], from_role), attempt)
            _adopt(
                connection,
                key,
                uuids,
                leaving,
                from_role,
                limits_of_project or {},
            )
            _rename(
                connection,
                [
                    {**name, 'uuid': uuid}
                    for uuid, name in (names or {}).items()
                    if uuid in uuids
                ],
            )
        found = arq_rows.read(connection, *fence.where(_ARQS, key))
        if {row['uuid'] for row in found} != {*uuids, *leaving}:
            raise fence.taken(connection, key, attempt)
        return found


def _adopt(
    connection: sa.Connection,
    key: fence.Key,
    uuids: Collection[str],
    leaving: Collection[str],
    from_role: str | None,
    limits_of_project: Mapping[str, int],
) -> None:
    held = {*uuids, *leaving}
    rows = {
        row['uuid']: row
        for row in arq_rows.lock(
            connection,
            sa.or_(
                _ARQS.c.uuid.in_(list(held)),
                sa.and_(*fence.where(_ARQS, key)),
            ),
        )
    }
    for uuid in (*uuids, *leaving):
        if uuid not in rows:
            raise arq_rows.not_found(uuid)
        _check_adoptable(rows[uuid], key, from_role)
    # All ARQs of an instance are of one project.
    for project_id in {rows[uuid]['project_id'] for uuid in uuids} - {None}:
        project_quota.check(
            connection,
            str(project_id),
            key,
            limits_of_project,
            collections.Counter(
                rows[uuid]['resource_class'] for uuid in uuids
            ),
        )
    arq_rows.delete(connection, rows.keys() - held)
    connection.execute(
        sa.update(_ARQS)
        .where(_ARQS.c.uuid.in_(list(held)))
        # Nova may bind ARQs to the instance on another host before this host
        # gives these back. Without a position these are not in the way.
        .values(
            role=key[2],
            position=None,
            is_leaving=_ARQS.c.uuid.in_(list(leaving)),
        )
    )


def _rename(
    connection: sa.Connection, rows: Sequence[Mapping[str, Any]]
) -> None:
    """:param rows: the uuid of each ARQ, with the columns of its group"""
    if rows:
        connection.execute(_renaming(len(rows)), per_row.parameters(rows))


@functools.lru_cache
def _renaming(amount: int) -> sa.Update:
    columns = [
        _ARQS.c[name]
        for name in ('device_profile_name', 'device_profile_group_id')
    ]
    return (
        sa.update(_ARQS)
        .where(per_row.is_one(_ARQS.c.uuid, amount))
        .values(per_row.values(_ARQS.c.uuid, columns, amount))
    )


def _check_adoptable(
    row: arq_rows.HeldRow, key: fence.Key, from_role: str | None
) -> None:
    """:raises Conflict: the ARQ is not Bound, or belongs elsewhere"""
    instance_uuid, hostname, role = key
    if row['state'] not in host_binding.HOLDING:
        raise exceptions.Conflict(
            f'ARQ {row["uuid"]} is {row["state"]}, not {arq_types.State.BOUND}'
        )
    if (row['instance_uuid'], row['hostname']) != (
        instance_uuid,
        hostname,
    ) or (from_role is None and row['role'] not in (None, role)):
        raise exceptions.Conflict(
            f'ARQ {row["uuid"]} is not for instance {instance_uuid} on host '
            f'{hostname} ({role})'
        )
