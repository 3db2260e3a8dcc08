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

A client's binding changes them, too: its host makes the ARQs its own, or finds
that no one came for them.

``hosts.orders`` is their revision. Everything here is a part of its caller's
transaction. A change of the revision locks the host.
"""

from collections.abc import Collection
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_accel.db.rows import host_rows
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import host_orders
from nova_accel.model.devices import hardware

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_ARQS = schema.ARQS


#: The revision by which a device changes its status, for an ``UPDATE`` of it.
#: The transaction has locked its host, and then calls
#: :func:`change_statuses`.
STATUS_SINCE = (
    sa.select(_HOSTS.c.orders + 1)
    .where(_HOSTS.c.hostname == _DEVICES.c.hostname)
    .scalar_subquery()
)


class HostNews(NamedTuple):
    """Further findings of a report about its host.

    :ivar is_due: whether a drain of it is due
    :ivar is_back: whether owners are told that it is silent
    """

    is_due: bool
    is_back: bool


def read(
    connection: sa.Connection, hostname: str
) -> tuple[host_orders.Orders, HostNews]:
    """The orders of a locked host, and what else there is to do."""
    revision, has_unadopted, is_due, found_silent = connection.execute(
        sa.select(
            _HOSTS.c.orders,
            sa.exists().where(
                _ARQS.c.hostname == hostname, _ARQS.c.role.is_(None)
            ),
            host_rows.IS_DUE,
            _HOSTS.c.found_silent,
        ).where(_HOSTS.c.hostname == hostname)
    ).one()
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
    orders = host_orders.Orders(
        revision,
        frozenset(disabled),
        frozenset(unclean),
        has_unadopted=bool(has_unadopted),
    )
    return orders, HostNews(
        bool(is_due), found_silent == host_rows.TOLD_SILENT
    )


def next_revision(connection: sa.Connection, hostname: str) -> int:
    """Raise the revision of a locked host, and give the new one."""
    change(connection, _HOSTS.c.hostname == hostname)
    revision: int = connection.execute(
        sa.select(_HOSTS.c.orders).where(_HOSTS.c.hostname == hostname)
    ).scalar_one()
    return revision


def tell_of_bindings(
    connection: sa.Connection, hostnames: Collection[str]
) -> None:
    """Have hosts look for ARQs that a client has bound to them.

    Nothing else of the hosts changes, so no scheduler reads them again.
    """
    connection.execute(
        sa.update(_HOSTS)
        .where(_HOSTS.c.hostname.in_(sorted(hostnames)))
        .values(orders=_HOSTS.c.orders + 1)
    )


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


def change_statuses(
    connection: sa.Connection, *where: sa.ColumnElement[bool], **values: Any
) -> None:
    """As :func:`change`, after :data:`STATUS_SINCE` was set."""
    change(connection, *where, **values)
    # In a statement of its own: databases differ in which value of a column
    # that is changed another one gets.
    connection.execute(
        sa.update(_HOSTS).where(*where).values(unpublished=_HOSTS.c.orders)
    )
