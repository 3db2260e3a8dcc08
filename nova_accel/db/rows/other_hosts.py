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

"""Refusing a report that names what is another host's.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema

_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_HOSTS = schema.HOSTS

_OF_DEPLOYABLES = _DEPLOYABLES.join(_DEVICES)


class _HostClaim(NamedTuple):
    """The uuids of one kind of thing that a report names.

    ``column`` and ``owner``, both of ``source``, have the uuid of each such
    thing and the host that has it.
    """

    what: str
    column: sa.Column[str]
    owner: sa.Column[str]
    source: sa.FromClause
    uuids: Collection[str]


def check(
    connection: sa.Connection,
    hostname: str,
    node_uuid: str,
    wanted: Mapping[sa.Table, reported_rows.Rows],
) -> None:
    """Check that a host reports nothing that another host has.

    :param node_uuid: the uuid of the host's compute node
    :param wanted: the rows of the report
    :raises Conflict: names the compute node, resource provider, device or
        attach handle, and the host that has it
    """
    found = connection.execute(
        sa.union_all(
            *(
                sa.select(
                    sa.literal(what).label('what'),
                    column.label('uuid'),
                    owner.label('hostname'),
                )
                .select_from(source)
                .where(column.in_(list(uuids)), owner != hostname)
                for what, column, owner, source, uuids in _claims(
                    node_uuid, wanted
                )
            )
        ).limit(1)
    ).one_or_none()
    if found is not None:
        raise exceptions.Conflict(
            f'{found.what} {found.uuid} belongs to host {found.hostname}: if '
            f'that is a former name of {hostname}, have "nova-accel-manage '
            'host forget" forget it'
        )


def _claims(
    node_uuid: str, wanted: Mapping[sa.Table, reported_rows.Rows]
) -> Iterator[_HostClaim]:
    providers = {row['rp_uuid'] for row in wanted[_DEPLOYABLES].values()}
    # No provider is the compute node of another host, either.
    yield _HostClaim(
        'compute node',
        _HOSTS.c.node_uuid,
        _HOSTS.c.hostname,
        _HOSTS,
        {node_uuid, *providers},
    )
    yield _HostClaim(
        'device',
        _DEVICES.c.uuid,
        _DEVICES.c.hostname,
        _DEVICES,
        wanted[_DEVICES],
    )
    yield _HostClaim(
        'resource provider',
        _DEPLOYABLES.c.rp_uuid,
        _DEVICES.c.hostname,
        _OF_DEPLOYABLES,
        providers,
    )
    yield _HostClaim(
        'attach handle',
        _HANDLES.c.uuid,
        _DEVICES.c.hostname,
        _OF_DEPLOYABLES.join(_HANDLES),
        wanted[_HANDLES],
    )
