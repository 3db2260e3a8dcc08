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

"""Attach handles that are to be cleaned although no guest gave them back."""

from collections.abc import Collection
from collections.abc import Mapping

import sqlalchemy as sa

from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema

_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


def find(
    wanted: Mapping[sa.Table, reported_rows.Rows],
    present: Mapping[sa.Table, reported_rows.Rows],
) -> tuple[set[str], set[str]]:
    """Find what is to be cleaned although no guest gave it back.

    :returns: the uuids of new handles, and of deployables that were not of the
        cleaned kind
    """
    cleaned = {
        uuid for uuid, row in wanted[_DEPLOYABLES].items() if row['is_cleaned']
    }
    new = {
        uuid
        for uuid, row in wanted[_HANDLES].items()
        if row['deployable_uuid'] in cleaned and uuid not in present[_HANDLES]
    }
    before = present[_DEPLOYABLES]
    return new, {
        uuid
        for uuid in cleaned & before.keys()
        if not before[uuid]['is_cleaned']
    }


def mark_free(
    connection: sa.Connection,
    deployable_uuids: Collection[str],
    since: int | None,
) -> None:
    """Mark the free handles of deployables as unclean, by these orders.

    A handle that a guest has is unclean when the guest gives it back.
    """
    if deployable_uuids:
        connection.execute(
            sa.update(_HANDLES)
            .where(
                _HANDLES.c.deployable_uuid == sa.bindparam('of_uuid'),
                _HANDLES.c.arq_uuid.is_(None),
                _HANDLES.c.unclean_since.is_(None),
            )
            .values(unclean_since=since),
            [{'of_uuid': uuid} for uuid in deployable_uuids],
        )


def mark_replaced(
    connection: sa.Connection, handle_uuids: Collection[str], since: int | None
) -> None:
    """Mark free handles that are of another device now as unclean.

    Only handles that are cleaned after each guest are marked. An unclean one
    is marked again: its cleaning began by earlier orders, so the result is
    that of the former device.
    """
    if handle_uuids:
        connection.execute(
            sa.update(_HANDLES)
            .where(
                _HANDLES.c.uuid.in_(list(handle_uuids)),
                _HANDLES.c.arq_uuid.is_(None),
                _HANDLES.c.deployable_uuid.in_(
                    sa.select(_DEPLOYABLES.c.uuid).where(
                        _DEPLOYABLES.c.is_cleaned
                    )
                ),
            )
            .values(unclean_since=since, unclean_reason=None)
        )
