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

"""Rows that were imported from Cyborg, until their host reports.

A host that was imported has never reported. So it is silent, and nothing can
be bound there. Its first report replaces its devices by its own, and the
accelerator requests (ARQs) go to these.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
from typing import Any
from typing import TypedDict

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import period_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import attach_handle
from nova_accel.model import host_contract
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import mapping

_ARQS = schema.ARQS
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_HOSTS = schema.HOSTS
_PROFILES = schema.DEVICE_PROFILES

#: When a host has reported that never did.
NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class HeldArq(TypedDict):
    """An ARQ of a host, and the unit that it has now, if any.

    ``is_reported`` says that the host reports the unit.
    """

    uuid: str
    instance_uuid: str | None
    role: str | None
    rp_uuid: str | None
    resource_class: str | None
    is_reported: bool | None


@engine.retried
def get_hosts() -> dict[str, bool]:
    """Name of each host -> whether it has reported."""
    with engine.reader() as connection:
        return {
            row.hostname: row.reported_at > NEVER
            for row in connection.execute(
                sa.select(_HOSTS.c.hostname, _HOSTS.c.reported_at)
            )
        }


@engine.retried
def add_profiles(profiles: Sequence[Mapping[str, Any]]) -> int:
    """Add device profiles that are not here yet.

    :param profiles: of :class:`nova_accel.model.cyborg.mapping.Import`
    :returns: how many were added
    """
    with engine.writer() as connection:
        names = set(connection.scalars(sa.select(_PROFILES.c.name)))
        uuids = set(connection.scalars(sa.select(_PROFILES.c.uuid)))
        new = [
            _dated(profile)
            for profile in profiles
            if profile['name'] not in names and profile['uuid'] not in uuids
        ]
        if new:
            with engine.raced(
                exceptions.Conflict('device profiles are being added')
            ):
                connection.execute(sa.insert(_PROFILES), new)
    return len(new)


@engine.retried
def add_host(found: mapping.MappedHost) -> bool:
    """Add a host with all that it has, unless it is known.

    :returns: whether it was added
    :raises Conflict: some of it is another host's
    """
    node = found.node
    with engine.writer() as connection:
        known = sa.select(_HOSTS.c.id).where(
            _HOSTS.c.hostname == node.nodename
        )
        if connection.scalar(known) is not None:
            return False
        try:
            for table, rows in (
                (_HOSTS, [_host_row(node)]),
                (schema.DEVICES, map(_dated, found.devices)),
                (_DEPLOYABLES, found.deployables),
                (_ARQS, map(_dated, found.arqs)),
                (_HANDLES, found.handles),
            ):
                if values := list(rows):
                    connection.execute(sa.insert(table), values)
            period_rows.begin_of_host(connection, node.nodename)
        except db_exc.DBDuplicateEntry as fault:
            raise exceptions.Conflict(
                f'host {node.nodename} is not imported, because something of '
                f'it belongs to another host already: {fault}'
            ) from fault
    return True


def _host_row(node: hosts.CyborgNode) -> dict[str, Any]:
    return {
        'hostname': node.nodename,
        'node_uuid': node.uuid,
        'service_host': node.service_host,
        'report_digest': '',
        'reported_at': NEVER,
        # It is not behind: it has reported by no contract at all.
        'contract': host_contract.NEWEST,
    }


def _dated(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, 'created_at': row['created_at'] or schema.now()}


@engine.retried
def get_held(hostname: str) -> list[HeldArq]:
    """The ARQs of a host, in the order of their uuids."""
    with engine.reader() as connection:
        return typed.rows(
            HeldArq,
            connection.execute(
                sa.select(
                    _ARQS.c.uuid,
                    _ARQS.c.instance_uuid,
                    _ARQS.c.role,
                    _DEPLOYABLES.c.rp_uuid,
                    _DEPLOYABLES.c.resource_class,
                    _HANDLES.c.present.label('is_reported'),
                )
                .select_from(_ARQS.outerjoin(_HANDLES).outerjoin(_DEPLOYABLES))
                .where(_ARQS.c.hostname == hostname)
                .order_by(_ARQS.c.uuid)
            ),
        )


@engine.retried
def get_left_mdevs(hostname: str) -> list[str]:
    """The uuids of mediated devices that a host may have made for no one.

    They are what its Cyborg hands out and no one has, until it reports. Nova's
    own driver makes such a device for a guest, and never removes it.
    """
    with engine.reader() as connection:
        return list(
            connection.scalars(
                sa.select(_HANDLES.c.uuid)
                .select_from(
                    _HOSTS.join(schema.DEVICES)
                    .join(_DEPLOYABLES)
                    .join(_HANDLES)
                )
                .where(
                    _HOSTS.c.hostname == hostname,
                    _HOSTS.c.reported_at == NEVER,
                    _HANDLES.c.type == attach_handle.HandleType.MDEV,
                    _HANDLES.c.arq_uuid.is_(None),
                )
                .order_by(_HANDLES.c.uuid)
            )
        )


@engine.retried
def remove_host(
    hostname: str, arq_uuids: Collection[str], silence_s: int
) -> dict[str, int]:
    """Delete a silent host with all that it has.

    :param arq_uuids: those that it has, as the caller knows it
    :returns: table name -> how many rows were deleted
    :raises NotFound: there is no such host
    :raises Conflict: it reports, or has other ARQs
    """
    with engine.writer() as connection:
        host_rows.lock(connection, hostname)
        host_rows.silent_node(connection, hostname, silence_s)
        held = arq_rows.lock(connection, _ARQS.c.hostname == hostname)
        if {row['uuid'] for row in held} != set(arq_uuids):
            raise exceptions.Conflict(
                f'the ARQs of host {hostname} have changed meanwhile: repeat '
                'the command'
            )
        return host_rows.delete(connection, hostname)


@engine.retried
def remove_profiles(profiles: Sequence[Mapping[str, Any]]) -> int:
    """Delete imported device profiles, unless a host is left.

    One that was changed or is in use stays.

    :param profiles: as for :func:`add_profiles`
    :returns: how many were deleted
    """
    with engine.writer() as connection:
        if connection.scalar(sa.select(_HOSTS.c.id).limit(1)) is not None:
            return 0
        wanted = {profile['uuid']: profile for profile in profiles}
        unchanged = [
            row.uuid
            for row in connection.execute(
                sa.select(
                    _PROFILES.c.uuid, _PROFILES.c.name, _PROFILES.c.groups
                ).where(
                    _PROFILES.c.uuid.in_(list(wanted)),
                    ~sa.exists().where(
                        _ARQS.c.device_profile_name == _PROFILES.c.name
                    ),
                )
            )
            if (row.name, row.groups)
            == (wanted[row.uuid]['name'], wanted[row.uuid]['groups'])
        ]
        connection.execute(
            sa.delete(_PROFILES).where(_PROFILES.c.uuid.in_(unchanged))
        )
    return len(unchanged)
