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

"""The results of cleaning what guests have given back."""

from collections.abc import Collection
from collections.abc import Mapping

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import order_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


@engine.retried
def note(
    hostname: str,
    cleaned: Collection[str],
    failed: Mapping[str, str],
    revision: int,
) -> None:
    """Let the next guests have the cleaned handles; the same again is fine.

    :param cleaned: uuids of attach handles
    :param failed: uuid of an attach handle -> why it could not be cleaned
    :param revision: the revision of the host's orders by which the cleaning
        began; a handle that became unclean by later orders stays unclean
    :raises NotFound: names the handles that do not exist
    :raises Conflict: names the handles that are another host's
    """
    with engine.writer() as connection:
        host_rows.lock(connection, hostname)
        are_present = _check(connection, hostname, {*cleaned, *failed})
        ordered = _HANDLES.c.unclean_since <= revision
        if failed:
            connection.execute(
                sa.update(_HANDLES)
                .where(_HANDLES.c.uuid.in_(list(failed)), ordered)
                .values(unclean_reason=sa.case(failed, value=_HANDLES.c.uuid))
            )
        done = connection.execute(
            sa.update(_HANDLES)
            .where(_HANDLES.c.uuid.in_(list(cleaned)), ordered)
            .values(unclean_since=None, unclean_reason=None)
        ).rowcount
        if done:
            # Rows that were kept only because they were unclean go with the
            # next report, which must be compared as a whole for that.
            order_rows.change(
                connection,
                _HOSTS.c.hostname == hostname,
                **({} if are_present else {'report_digest': ''}),
            )


def _check(
    connection: sa.Connection, hostname: str, uuids: Collection[str]
) -> bool:
    """Whether the host still reports all of the handles."""
    found = connection.execute(
        sa.select(_HANDLES.c.uuid, _HANDLES.c.present, _DEVICES.c.hostname)
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        .where(_HANDLES.c.uuid.in_(list(uuids)))
    ).all()
    hosts = {handle.uuid: handle.hostname for handle in found}
    unknown = sorted(set(uuids) - hosts.keys())
    if unknown:
        raise exceptions.NotFound(
            f'Attach handle not found with uuid={", ".join(unknown)}'
        )
    foreign = sorted(uuid for uuid in uuids if hosts[uuid] != hostname)
    if foreign:
        raise exceptions.Conflict(
            '; '.join(
                f'attach handle {uuid} belongs to host {hosts[uuid]}'
                for uuid in foreign
            )
        )
    return all(handle.present for handle in found)
