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

"""The orders of hosts: which devices are disabled, which handles unclean.

``hosts.orders`` is their revision. Everything here is a part of its caller's
transaction. A change of the revision locks the host.
"""

from typing import Any

import sqlalchemy as sa

from nova_accel.db import clock
from nova_accel.db import schema
from nova_accel.model import hardware
from nova_accel.model import standing_orders

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


def read(connection: sa.Connection, hostname: str) -> standing_orders.Orders:
    """The orders of a host that is locked."""
    revision = connection.scalar(
        sa.select(_HOSTS.c.orders).where(_HOSTS.c.hostname == hostname)
    )
    disabled = connection.scalars(
        sa.select(_DEVICES.c.uuid).where(
            _DEVICES.c.hostname == hostname,
            _DEVICES.c.status != hardware.Status.ENABLED,
        )
    )
    unclean = connection.scalars(
        sa.select(_HANDLES.c.uuid)
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        .where(
            _DEVICES.c.hostname == hostname,
            _HANDLES.c.unclean_since.is_not(None),
        )
    )
    return standing_orders.Orders(
        revision or 0, frozenset(disabled), frozenset(unclean)
    )


def next_revision(connection: sa.Connection, hostname: str) -> int:
    """Raise the revision of a locked host, and give the new one."""
    change(connection, _HOSTS.c.hostname == hostname)
    revision: int = connection.execute(
        sa.select(_HOSTS.c.orders).where(_HOSTS.c.hostname == hostname)
    ).scalar_one()
    return revision


def change(
    connection: sa.Connection, *where: sa.ColumnElement[bool], **values: Any
) -> None:
    """Raise the revision of hosts.

    :param where: conditions for the rows of the hosts
    :param values: further columns to set in these rows
    """
    connection.execute(
        sa.update(_HOSTS)
        .where(*where)
        .values(orders=_HOSTS.c.orders + 1, changed_at=clock.now(), **values)
    )
