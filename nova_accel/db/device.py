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

"""Devices, as the administrator sees and disables them."""

from collections.abc import Sequence
import datetime
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import order_rows
from nova_accel.db.rows import pages
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import paging
from nova_accel.model.devices import hardware
from nova_accel.model.units import unit_state

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

#: The keys that devices can be sorted by, in the API's words.
SORT_KEYS: pages.Keys = {
    'vendor': _DEVICES.c.vendor_id,
    'model': _DEVICES.c.product,
    'vendor_board_info': _DEVICES.c.vendor,
    **pages.columns(
        _DEVICES,
        'uuid',
        'type',
        'hostname',
        'status',
        'created_at',
        'updated_at',
    ),
}


class _Columns(TypedDict):
    id: int
    uuid: str
    hostname: str
    name: str
    type: str
    vendor_id: str
    vendor: str
    product_id: str
    product: str
    address: str
    driver: str
    numa_node: int | None
    status: str
    status_since: int
    is_drained: bool
    fault: str | None
    faulted_at: datetime.datetime | None
    attributes: dict[str, str]
    link_sets: list[str]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    #: See :data:`.host_rows.IS_PUBLISHED`.
    is_published: bool


class UncleanHandle(TypedDict):
    """An attach handle that is to be cleaned."""

    uuid: str
    #: The name of its deployable.
    deployable: str
    reason: str | None


class DeviceRow(_Columns):
    """A device, and its attach handles that are to be cleaned."""

    unclean: list[UncleanHandle]


def get_all(
    type_: str | None = None,
    vendor: str | None = None,
    hostname: str | None = None,
    page: paging.Page = paging.ALL,
) -> list[DeviceRow]:
    """The devices that match all arguments, oldest first.

    :param vendor: PCI vendor id, with or without ``0x``
    :raises InvalidRequest: there is no such marker
    """
    where = []
    if type_ is not None:
        where.append(_DEVICES.c.type == type_)
    if vendor is not None:
        where.append(_DEVICES.c.vendor_id == vendor.lower().removeprefix('0x'))
    if hostname is not None:
        where.append(_DEVICES.c.hostname == hostname)
    return _read(where, page)


def get(uuid: str) -> DeviceRow:
    """One device, as in :func:`get_all`.

    :raises NotFound: there is none
    """
    found = _read([_DEVICES.c.uuid == uuid])
    if not found:
        raise _not_found(uuid)
    return found[0]


@engine.retried
def get_resource_classes(type_: str) -> set[str]:
    """The resource classes of all devices of a type."""
    query = (
        sa.select(_DEPLOYABLES.c.resource_class)
        .join(_DEVICES)
        .where(_DEVICES.c.type == type_)
        .distinct()
    )
    with engine.reader() as connection:
        return set(connection.scalars(query))


@engine.retried
def set_status(uuid: str, status: hardware.Status) -> str:
    """Enable or disable a whole device for further guests.

    The host is told in the answer to its next report. A device that is
    disabled because its host is drained stays disabled after that, too.

    :returns: the name of its host
    :raises NotFound: there is no such device
    """
    its_host = sa.select(_DEVICES.c.hostname).where(_DEVICES.c.uuid == uuid)
    this = sa.update(_DEVICES).where(_DEVICES.c.uuid == uuid)
    with engine.writer() as connection:
        # The host is locked first, as by a report.
        hostname: str | None = connection.scalar(
            sa.select(_HOSTS.c.hostname)
            .where(_HOSTS.c.hostname == its_host.scalar_subquery())
            .with_for_update()
        )
        if hostname is None:
            raise _not_found(uuid)
        changed = connection.execute(
            this.where(_DEVICES.c.status != status).values(
                status=status,
                status_since=order_rows.STATUS_SINCE,
                is_drained=False,
                updated_at=schema.now(),
            )
        ).rowcount
        if changed:
            # The next report is compared as a whole, so that an enabled device
            # goes away if the host no longer has it.
            order_rows.change_statuses(
                connection, _HOSTS.c.hostname == hostname, report_digest=''
            )
        else:
            # It was disabled for the drain of its host: no longer for that
            # alone.
            connection.execute(this.values(is_drained=False))
    return hostname


def _not_found(uuid: str) -> exceptions.NotFound:
    return exceptions.NotFound(f'Device not found with uuid={uuid}')


@engine.retried
def _read(
    where: Sequence[sa.ColumnElement[bool]], page: paging.Page = paging.ALL
) -> list[DeviceRow]:
    with engine.reader() as connection:
        devices: dict[str, DeviceRow] = {
            row['uuid']: {
                **row,
                'is_published': bool(row['is_published']),
                'unclean': [],
            }
            for row in pages.read(
                connection,
                _Columns,
                sa.select(
                    _DEVICES, host_rows.IS_PUBLISHED.label('is_published')
                ).join(_HOSTS),
                where,
                page,
                _DEVICES,
                SORT_KEYS,
            )
        }
        if not page.is_all(len(devices)):
            where = [_DEVICES.c.uuid.in_(list(devices))]
        unclean = connection.execute(
            sa.select(
                _DEPLOYABLES.c.device_uuid,
                _DEPLOYABLES.c.name,
                _HANDLES.c.uuid,
                *unit_states.CONDITION,
            )
            .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
            .where(*where, _HANDLES.c.unclean_since.is_not(None))
            .order_by(_HANDLES.c.id)
        ).all()
    for device_uuid, deployable, uuid, *condition in unclean:
        if device_uuid in devices:
            devices[device_uuid]['unclean'].append(
                {
                    'uuid': uuid,
                    'deployable': deployable,
                    'reason': unit_state.Condition(*condition).reason(
                        unit_state.UNCLEAN
                    ),
                }
            )
    return list(devices.values())
