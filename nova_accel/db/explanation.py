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


"""The units of resource classes on all hosts, and why some are not free."""

from collections.abc import Collection
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.units import explanation
from nova_accel.model.units import unit_state

CONF = conf.CONF

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


@engine.retried
def get_page(
    resource_classes: Collection[str],
    limit: int,
    after: str | None = None,
    hostname: str | None = None,
) -> tuple[list[str], list[explanation.CheckedUnits]]:
    """The units of the classes on some hosts, by two statements.

    A deployable without units has one entry with the amount 0.

    :param limit: the number of hosts
    :param after: the host before the first one
    :param hostname: the only host
    :raises NotFound: this host has never reported
    :returns: the hosts that have such units, in the order of their names; and
        the units
    """
    wanted = _is_of(resource_classes)
    # In the order of this column, of which there is an index.
    hosts = sa.select(_HOSTS.c.hostname).where(
        sa.exists().where(
            _DEVICES.c.hostname == _HOSTS.c.hostname,
            _DEPLOYABLES.c.device_uuid == _DEVICES.c.uuid,
            wanted,
        )
    )
    if after is not None:
        hosts = hosts.where(_HOSTS.c.hostname > after)
    if hostname is not None:
        hosts = hosts.where(_HOSTS.c.hostname == hostname)
    with engine.reader() as connection:
        names = list(
            connection.scalars(hosts.order_by(_HOSTS.c.hostname).limit(limit))
        )
        if hostname is not None and not names:
            host_rows.check_known(connection, [hostname])
        return names, _read(connection, wanted, _DEVICES.c.hostname.in_(names))


def _is_of(resource_classes: Collection[str]) -> sa.ColumnElement[bool]:
    return _DEPLOYABLES.c.resource_class.in_(list(resource_classes))


def _read(
    connection: sa.Connection, *wanted: sa.ColumnElement[bool]
) -> list[explanation.CheckedUnits]:
    """The units of the deployables that are wanted."""
    counted = _count(wanted).subquery('counted')
    rows = connection.execute(
        sa.select(
            _DEVICES.c.hostname,
            _DEPLOYABLES.c.rp_uuid,
            _DEPLOYABLES.c.resource_class,
            _DEPLOYABLES.c.traits,
            _DEPLOYABLES.c.device_uuid,
            _DEVICES.c.address,
            host_rows.is_silent(CONF.nova_accel.host_silence_s),
            _DEVICES.c.link_sets,
            host_rows.IS_PUBLISHED,
            sa.func.coalesce(counted.c.amount, 0),
            _DEVICES.c.status,
            _DEVICES.c.fault,
            counted.c.is_clean,
            counted.c.unclean_reason,
            counted.c.has_room,
            counted.c.is_held,
        )
        .select_from(
            _DEPLOYABLES.join(_DEVICES)
            .join(_HOSTS)
            .outerjoin(
                counted, counted.c.deployable_uuid == _DEPLOYABLES.c.uuid
            )
        )
        .where(*wanted)
        .order_by(_DEPLOYABLES.c.id)
    )
    return [
        explanation.CheckedUnits(
            hostname,
            rp_uuid,
            resource_class,
            frozenset(traits),
            device_uuid,
            device_address,
            bool(is_silent),
            unit_state.Condition(True, *facts).reason() if amount else None,
            amount,
            tuple(link_sets),
            bool(is_published),
        )
        for (
            hostname,
            rp_uuid,
            resource_class,
            traits,
            device_uuid,
            device_address,
            is_silent,
            link_sets,
            is_published,
            amount,
            *facts,
        ) in rows
    ]


def _count(wanted: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    """How many units of each deployable are alike."""
    each = (
        sa.select(
            _HANDLES.c.deployable_uuid,
            _HANDLES.c.unclean_since.is_(None).label('is_clean'),
            _HANDLES.c.unclean_reason,
            unit_states.has_room().label('has_room'),
            _HANDLES.c.arq_uuid.is_not(None).label('is_held'),
        )
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        .where(*wanted, _HANDLES.c.present)
        .subquery('each')
    )
    return sa.select(each, sa.func.count().label('amount')).group_by(*each.c)
