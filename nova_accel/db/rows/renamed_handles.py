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

"""PCI functions that a host reports under another uuid than before.

A function is its address. Its uuid changes with that of the compute node, and
a row that was imported has the uuid of its origin. The ARQ that has the
function goes to the reported handle: otherwise the function in the guest would
count as free.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova_accel.db.rows import per_row
from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema
from nova_accel.model import attach_handle

_ARQS = schema.ARQS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

#: Domain, bus, device and function, and the slice of the card.
_Address = tuple[object, ...]


def is_of_another_part(
    hostname: str, wanted: Mapping[sa.Table, reported_rows.Rows]
) -> sa.ColumnElement[bool]:
    """Whether a handle of the host is not in this part of its report.

    If it is a function that the part has, no other part has it.

    :param wanted: the rows of the part
    """
    return sa.and_(
        _DEVICES.c.hostname == hostname,
        _DEVICES.c.uuid.not_in(list(wanted[_DEVICES])),
        _HANDLES.c.uuid.not_in(list(wanted[_HANDLES])),
    )


def find(handles: reported_rows.Rows, gone: Collection[str]) -> dict[str, str]:
    """The functions that are reported under other uuids.

    :param handles: the rows of all handles of a host
    :param gone: the uuids of those that the host does not report any more
    :returns: uuid that is gone -> uuid in the report
    """
    if not gone:
        return {}
    now = {
        address: row
        for uuid, row in handles.items()
        if uuid not in gone and (address := _address(row)) is not None
    }
    return {
        uuid: now[address]['uuid']
        for uuid in gone
        if (address := _address(handles[uuid])) in now
        and not attach_handle.is_another(
            handles[uuid]['identity'], now[address]['identity']
        )
    }


def let_arqs_go_over(
    connection: sa.Connection, renamed: Mapping[str, str]
) -> bool:
    """Give ARQs the reported handles of the functions that they have.

    An ARQ stays where it is if another one has the reported handle.

    :param renamed: as :func:`find` returns it
    :returns: whether an ARQ has gone to another handle
    """
    arqs = _arqs(connection, {*renamed, *renamed.values()}) if renamed else {}
    moves = {
        reported: (gone, arqs[gone])
        for gone, reported in renamed.items()
        if gone in arqs and reported not in arqs
    }
    if not moves:
        return False
    # First, since an ARQ has one handle at most.
    connection.execute(
        sa.update(_HANDLES)
        .where(_HANDLES.c.uuid.in_([gone for gone, _arq in moves.values()]))
        .values(arq_uuid=None)
    )
    connection.execute(
        sa.update(_HANDLES)
        .where(per_row.is_one(_HANDLES.c.uuid, len(moves)))
        .values(
            # It is unclean once the guest gives it back.
            unclean_since=None,
            unclean_reason=None,
            **per_row.values(
                _HANDLES.c.uuid, [_HANDLES.c.arq_uuid], len(moves)
            ),
        ),
        per_row.parameters(
            [
                {'uuid': reported, 'arq_uuid': arq_uuid}
                for reported, (_gone, arq_uuid) in moves.items()
            ]
        ),
    )
    return True


def let_providers_follow(connection: sa.Connection, hostname: str) -> None:
    """Give ARQs the provider that their handles are of now."""
    its_provider = (
        sa.select(_DEPLOYABLES.c.rp_uuid)
        .select_from(_DEPLOYABLES.join(_HANDLES))
        .where(_HANDLES.c.arq_uuid == _ARQS.c.uuid)
    )
    connection.execute(
        sa.update(_ARQS)
        .where(
            _ARQS.c.hostname == hostname,
            sa.exists(
                its_provider.where(
                    _DEPLOYABLES.c.rp_uuid != _ARQS.c.device_rp_uuid
                )
            ),
        )
        .values(
            device_rp_uuid=its_provider.scalar_subquery(),
            updated_at=schema.now(),
        )
    )


def _arqs(
    connection: sa.Connection, handle_uuids: Iterable[str]
) -> dict[str, str]:
    """Handle uuid -> ARQ uuid of those that are taken; they stay locked."""
    return {
        handle.uuid: handle.arq_uuid
        for handle in connection.execute(
            sa.select(_HANDLES.c.uuid, _HANDLES.c.arq_uuid)
            .where(_HANDLES.c.uuid.in_(sorted(handle_uuids)))
            .order_by(_HANDLES.c.uuid)
            .with_for_update()
        )
        if handle.arq_uuid is not None
    }


def _address(row: Mapping[str, Any]) -> _Address | None:
    """The function's address; a mediated device is no function.

    Units of different slices of a card may have the same function.
    """
    if row['type'] != attach_handle.HandleType.PCI:
        return None
    info = row['info']
    return (
        *(info[part] for part in ('domain', 'bus', 'device', 'function')),
        *sorted(info.get('slice', {}).items()),
    )
