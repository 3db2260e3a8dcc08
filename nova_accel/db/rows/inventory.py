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

"""The devices of a host, replaced by those of its report.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import judged_arqs
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import period_rows
from nova_accel.db.rows import renamed_devices
from nova_accel.db.rows import renamed_handles
from nova_accel.db.rows import reported_rows
from nova_accel.db.rows import typed
from nova_accel.db.rows import unclean_handles
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import attach_handle
from nova_accel.model.devices import hardware

_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_HOSTS = schema.HOSTS

#: Rows for one statement: a whole part of a report, and far below SQLite's
#: default limit of 32766.
_AT_ONCE = 4096


def replace(
    connection: sa.Connection,
    hostname: str,
    wanted: Mapping[sa.Table, reported_rows.Rows],
    others: Collection[str] | None = (),
) -> list[judged_arqs.JudgedRow]:
    """Make the rows of a locked host match its report.

    A row that the report lacks is kept while it is needed. That is so for a
    handle that is taken or unclean, with its deployable and its device, and
    for a device that an administrator has disabled. A PCI function that is
    taken may be reported under another uuid: then the ARQ follows it. A
    device that is disabled may be, too: then that stays disabled.

    :param wanted: the rows of the report, of which none is another host's
    :param others: the uuids of further devices, which stay as they are; None
        if all others do
    :returns: what guests have that has just failed or gone, or just works
        again; if there may be such, by one more statement
    :raises Conflict: one of the others is not known
    """
    present = _present(connection, hostname, wanted, others)
    known = {table: present[table] | wanted[table] for table in wanted}
    _leave(present, others or ())
    turned = _put_devices(
        connection, hostname, wanted[_DEVICES], present[_DEVICES]
    )
    _put(
        connection,
        _DEPLOYABLES,
        wanted[_DEPLOYABLES],
        present[_DEPLOYABLES],
        {},
        {},
    )
    _put_handles(connection, hostname, wanted, present)
    gone = {
        table: present[table].keys() - wanted[table].keys() for table in wanted
    }
    renamed, found_again = _give_to_heirs(
        connection, hostname, known, wanted, present, gone, others is None
    )
    gone[_HANDLES] |= renamed
    _remove(connection, {table: list(gone[table]) for table in gone})
    return judged_arqs.read_turned(
        connection,
        hostname,
        set(turned),
        found_again
        | {
            uuid
            for uuid, row in present[_HANDLES].items()
            if row['present'] is (uuid in gone[_HANDLES])
        },
    )


def _give_to_heirs(
    connection: sa.Connection,
    hostname: str,
    known: Mapping[sa.Table, reported_rows.Rows],
    wanted: Mapping[sa.Table, reported_rows.Rows],
    present: Mapping[sa.Table, reported_rows.Rows],
    gone: Mapping[sa.Table, Collection[str]],
    is_a_part: bool,
) -> tuple[Set[str], Set[str]]:
    """Give ARQs, providers and states to rows that have a new uuid.

    :param known: all rows of the host, and of the parts before
    :param is_a_part: whether other devices of the host are not told of
    :returns: the handles whose ARQs have gone to another one; and of the
        others, those that a report before did not have under any uuid
    """
    stale = {uuid: known[_HANDLES][uuid] for uuid in gone[_HANDLES]}
    if is_a_part and wanted[_HANDLES].keys() - present[_HANDLES].keys():
        stale |= _read(
            connection,
            _HANDLES,
            _DEPLOYABLES.join(_DEVICES).join(_HANDLES),
            renamed_handles.is_of_another_part(hostname, wanted),
        )
    renamed = renamed_handles.find(known[_HANDLES] | stale, stale)
    are_renamed = renamed_handles.let_arqs_go_over(connection, renamed)
    renamed_devices.disable_heirs(connection, hostname, known, gone[_DEVICES])
    if (
        are_renamed
        or _differ(wanted[_DEPLOYABLES], present[_DEPLOYABLES], 'rp_uuid')
        or _differ(wanted[_HANDLES], present[_HANDLES], 'deployable_uuid')
    ):
        renamed_handles.let_providers_follow(connection, hostname)
        period_rows.rename(connection, hostname)
    return renamed.keys(), {
        reported
        for uuid, reported in renamed.items()
        if not stale[uuid]['present']
    }


def _put_devices(
    connection: sa.Connection,
    hostname: str,
    wanted: reported_rows.Rows,
    present: reported_rows.Rows,
) -> list[str]:
    """See :func:`_note_faults`."""
    at = schema.now()
    new = _status_of_new(connection, hostname, wanted.keys() - present.keys())
    _put(
        connection,
        _DEVICES,
        wanted,
        present,
        {**new, 'created_at': at},
        {'updated_at': at},
    )
    return _note_faults(connection, wanted, present)


def _note_faults(
    connection: sa.Connection,
    wanted: reported_rows.Rows,
    present: reported_rows.Rows,
) -> list[str]:
    """Note when devices became faulty, and forget it of those that work.

    :returns: their uuids
    """
    before, now = (
        {uuid for uuid, row in rows.items() if row['fault'] is not None}
        for rows in (present, wanted)
    )
    turned = [uuid for uuid in wanted if (uuid in before) != (uuid in now)]
    for some in _chunks(turned):
        connection.execute(
            sa.update(_DEVICES)
            .where(_DEVICES.c.uuid.in_(some))
            .values(
                faulted_at=sa.case(
                    (_DEVICES.c.fault.is_not(None), clock.now())
                )
            )
        )
    return turned


def _status_of_new(
    connection: sa.Connection, hostname: str, new: Collection[str]
) -> dict[str, Any]:
    """The status of devices that a host reports for the first time.

    They are disabled if the host is drained.
    """
    if new and connection.scalar(
        sa.select(_HOSTS.c.drained_at).where(_HOSTS.c.hostname == hostname)
    ):
        order_rows.next_revision(connection, hostname)
        return {'status': hardware.Status.MAINTAINING, 'is_drained': True}
    return {'status': hardware.Status.ENABLED, 'is_drained': False}


def _put_handles(
    connection: sa.Connection,
    hostname: str,
    wanted: Mapping[sa.Table, reported_rows.Rows],
    present: Mapping[sa.Table, reported_rows.Rows],
) -> None:
    """Write the reported handles, and which of them are unclean.

    A handle that is cleaned after each guest becomes unclean in three cases:

    * It is seen for the first time, also after its host was forgotten: no one
      knows who had it before.
    * It is free, and was not of the cleaned kind until now.
    * It is free, and another device is in its place: the state of the former
      device says nothing about the new one.

    While a guest has a handle, it stays the handle of the guest's device.
    """
    unclean, soiled = unclean_handles.find(wanted, present)
    replaced = _keep_identities(
        connection, hostname, wanted[_HANDLES], present[_HANDLES]
    )
    since = (
        order_rows.next_revision(connection, hostname)
        if unclean or soiled or replaced
        else None
    )
    for is_unclean in (False, True):
        _put(
            connection,
            _HANDLES,
            {
                uuid: row
                for uuid, row in wanted[_HANDLES].items()
                if (uuid in unclean) is is_unclean
            },
            present[_HANDLES],
            {'unclean_since': since if is_unclean else None},
            {},
        )
    unclean_handles.mark_free(connection, soiled, since)
    unclean_handles.mark_replaced(connection, replaced, since)


def _present(
    connection: sa.Connection,
    hostname: str,
    wanted: Mapping[sa.Table, reported_rows.Rows],
    others: Collection[str] | None,
) -> dict[sa.Table, reported_rows.Rows]:
    """The rows that a report is about.

    A handle may be of another device of the host until now.

    :param wanted: the rows of the report
    :param others: as for :func:`replace`
    """
    mine = _DEVICES.c.hostname == hostname
    is_reported = _DEVICES.c.uuid.in_(list(wanted[_DEVICES]))
    here = of_handles = mine
    if others is None:
        here = sa.and_(mine, is_reported)
        of_handles = sa.and_(
            mine,
            sa.or_(is_reported, _HANDLES.c.uuid.in_(list(wanted[_HANDLES]))),
        )
    deployables = _DEPLOYABLES.join(_DEVICES)
    return {
        _DEVICES: _read(connection, _DEVICES, _DEVICES, here),
        _DEPLOYABLES: _read(connection, _DEPLOYABLES, deployables, here),
        _HANDLES: _read(
            connection, _HANDLES, deployables.join(_HANDLES), of_handles
        ),
    }


def _leave(
    present: Mapping[sa.Table, reported_rows.Rows], others: Collection[str]
) -> None:
    """Keep the rows of these devices, and the rows below them, as they are.

    :raises Conflict: names a device that is not known.
    """
    if not others:
        return
    kept = set(others)
    unknown = sorted(kept - present[_DEVICES].keys())
    if unknown:
        raise exceptions.Conflict(
            f'{len(unknown)} devices of other parts of the report are not '
            f'known, such as {unknown[0]}: begin the report again'
        )
    for table, parent in (
        (_DEVICES, 'uuid'),
        (_DEPLOYABLES, 'device_uuid'),
        (_HANDLES, 'deployable_uuid'),
    ):
        gone = {
            uuid for uuid, row in present[table].items() if row[parent] in kept
        }
        for uuid in gone:
            del present[table][uuid]
        kept |= gone


def _keep_identities(
    connection: sa.Connection,
    hostname: str,
    wanted: reported_rows.Rows,
    present: reported_rows.Rows,
) -> set[str]:
    """Find the handles that are of another device now.

    :param wanted: is changed: a handle that a guest has, or that has no
        identity now, gets the identity that it had
    :returns: the uuids of the free handles that are of another device
    """
    others = {
        uuid
        for uuid in wanted.keys() & present.keys()
        if attach_handle.is_another(
            present[uuid]['identity'], wanted[uuid]['identity']
        )
    }
    taken = (
        set(
            connection.scalars(
                sa.select(_HANDLES.c.uuid).where(
                    _HANDLES.c.uuid.in_(list(others)),
                    _HANDLES.c.arq_uuid.is_not(None),
                )
            )
        )
        if others
        else set()
    )
    if taken:
        # They may be free by the next report, so that is compared as a whole.
        connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname == hostname)
            .values(report_digest='')
        )
    for uuid in wanted.keys() & present.keys():
        if uuid in taken or wanted[uuid]['identity'] is None:
            wanted[uuid]['identity'] = present[uuid]['identity']
    return others - taken


def _read(
    connection: sa.Connection,
    table: sa.Table,
    source: sa.FromClause,
    where: sa.ColumnElement[bool],
) -> reported_rows.Rows:
    query = sa.select(
        *(table.c[name] for name in reported_rows.COLUMNS[table])
    ).select_from(source)
    return {
        row['uuid']: row
        for row in typed.rows(dict, connection.execute(query.where(where)))
    }


def _put(
    connection: sa.Connection,
    table: sa.Table,
    wanted: reported_rows.Rows,
    present: reported_rows.Rows,
    if_new: Mapping[str, Any],
    if_changed: Mapping[str, Any],
) -> None:
    new = [
        {**row, **if_new}
        for uuid, row in wanted.items()
        if uuid not in present
    ]
    if new:
        try:
            connection.execute(sa.insert(table), new)
        except db_exc.DBDuplicateEntry as fault:
            raise exceptions.Conflict(
                f'some of the {table.name} belong to another host'
            ) from fault
    changed = [
        {**row, **if_changed, 'of_uuid': uuid}
        for uuid, row in wanted.items()
        if uuid in present and present[uuid] != row
    ]
    if changed:
        connection.execute(
            sa.update(table).where(table.c.uuid == sa.bindparam('of_uuid')),
            changed,
        )


def _differ(
    wanted: reported_rows.Rows, present: reported_rows.Rows, name: str
) -> bool:
    return any(
        row[name] != present[uuid][name]
        for uuid, row in wanted.items()
        if uuid in present
    )


def _remove(
    connection: sa.Connection, gone: Mapping[sa.Table, list[str]]
) -> None:
    for some in _chunks(gone[_HANDLES]):
        handles = _HANDLES.c.uuid.in_(some)
        # In this order: a handle that is given back in between is deleted,
        # either here or by the transaction that gives it back.
        connection.execute(
            sa.update(_HANDLES).where(handles).values(present=False)
        )
        connection.execute(
            sa.delete(_HANDLES).where(
                handles,
                _HANDLES.c.arq_uuid.is_(None),
                _HANDLES.c.unclean_since.is_(None),
            )
        )
    for some in _chunks(gone[_DEPLOYABLES]):
        connection.execute(
            sa.delete(_DEPLOYABLES).where(
                _DEPLOYABLES.c.uuid.in_(some),
                ~sa.exists().where(
                    _HANDLES.c.deployable_uuid == _DEPLOYABLES.c.uuid
                ),
            )
        )
    for some in _chunks(gone[_DEVICES]):
        connection.execute(
            sa.delete(_DEVICES).where(
                _DEVICES.c.uuid.in_(some),
                _DEVICES.c.status == hardware.Status.ENABLED,
                ~sa.exists().where(
                    _DEPLOYABLES.c.device_uuid == _DEVICES.c.uuid
                ),
            )
        )


def _chunks(uuids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Chunks that any database takes in one statement."""
    for start in range(0, len(uuids), _AT_ONCE):
        yield uuids[start : start + _AT_ONCE]
