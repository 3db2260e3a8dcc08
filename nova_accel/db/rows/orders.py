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

"""What hosts are to do: the status of their devices, and what is unclean.

``hosts.orders`` is the revision of it. Everything here is a part of its
caller's transaction, and who changes a revision locks the host by that.
"""

from typing import Any

import sqlalchemy as sa

from nova_accel.db import schema
from nova_accel.model import device as device_model
from nova_accel.model import orders

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


def read(connection: sa.Connection, hostname: str) -> orders.Orders:
    """The orders of a host that is locked."""
    revision = connection.scalar(
        sa.select(_HOSTS.c.orders).where(_HOSTS.c.hostname == hostname))
    disabled = connection.scalars(
        sa.select(_DEVICES.c.uuid)
        .where(_DEVICES.c.hostname == hostname,
               _DEVICES.c.status != device_model.Status.ENABLED))
    unclean = connection.scalars(
        sa.select(_HANDLES.c.uuid)
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        .where(_DEVICES.c.hostname == hostname,
               _HANDLES.c.unclean_since.is_not(None)))
    return orders.Orders(revision or 0, frozenset(disabled),
                         frozenset(unclean))


def next_revision(connection: sa.Connection, hostname: str) -> int:
    """Let a host that is locked have a newer revision, and say which."""
    change(connection, _HOSTS.c.hostname == hostname)
    revision: int = connection.execute(sa.select(_HOSTS.c.orders).where(
        _HOSTS.c.hostname == hostname)).scalar_one()
    return revision


def change(connection: sa.Connection, *where: sa.ColumnElement[bool],
           **values: Any) -> None:
    """Let hosts have a newer revision than they know.

    :param where: of the hosts' rows
    :param values: what else is to be changed in these
    """
    connection.execute(sa.update(_HOSTS).where(*where).values(
        orders=_HOSTS.c.orders + 1, **values))
