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

"""The history of the programming of FPGA regions.

It also has that of devices and deployables that are gone.
"""

import dataclasses
import datetime
from typing import Any
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db.rows import pages
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import paging
from nova_accel.model.fpga import programming_record

CONF = conf.CONF

_TABLE = schema.PROGRAMMINGS
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES

#: The keys that programmings can be sorted by.
SORT_KEYS = pages.columns(
    _TABLE,
    'uuid',
    'hostname',
    'device_uuid',
    'region',
    'bitstream_id',
    'project_id',
    'user_id',
    'instance_uuid',
    'started_at',
    'finished_at',
)

_NEWEST_FIRST = (paging.SortKey('started_at', descending=True),)


class ProgrammingRow(TypedDict):
    """One programming of a region."""

    id: int
    uuid: str
    hostname: str
    device_uuid: str
    region: str
    bitstream_id: str
    project_id: str | None
    user_id: str | None
    instance_uuid: str | None
    started_at: datetime.datetime
    finished_at: datetime.datetime | None
    failure: str | None


@engine.retried
def note(hostname: str, record: programming_record.Record) -> None:
    """Remember a programming that has begun or ended on a host.

    The same again changes nothing, and a programming that has ended stays so.
    So the host may tell these in any order, and more than once.

    :raises Conflict: it is another host's, or of another host's device
    """
    ended = {'finished_at': record.finished_at, 'failure': record.failure}
    with engine.writer() as connection:
        known_host, of_device = connection.execute(
            sa.select(
                sa.select(_TABLE.c.hostname)
                .where(_TABLE.c.uuid == record.uuid)
                .scalar_subquery(),
                # None if the device is gone.
                sa.select(_DEVICES.c.hostname)
                .where(_DEVICES.c.uuid == record.device_uuid)
                .scalar_subquery(),
            )
        ).one()
        if known_host is None:
            if of_device not in (None, hostname):
                raise exceptions.Conflict(
                    f'programming {record.uuid} is of device '
                    f'{record.device_uuid}, which belongs to host {of_device}'
                )
            _insert(
                connection,
                {
                    'uuid': record.uuid,
                    'hostname': hostname,
                    'device_uuid': record.device_uuid,
                    'region': record.region,
                    'bitstream_id': record.bitstream_id,
                    'project_id': record.asker.project_id,
                    'user_id': record.asker.user_id,
                    'instance_uuid': record.asker.instance_uuid,
                    'started_at': record.started_at,
                    **ended,
                },
            )
            _forget_old(connection, hostname, record)
        elif known_host != hostname:
            raise exceptions.Conflict(
                f'programming {record.uuid} belongs to host {known_host}'
            )
        elif record.finished_at is not None:
            connection.execute(
                sa.update(_TABLE)
                .where(
                    _TABLE.c.uuid == record.uuid,
                    _TABLE.c.finished_at.is_(None),
                )
                .values(ended)
            )


def _forget_old(
    connection: sa.Connection,
    hostname: str,
    record: programming_record.Record,
) -> None:
    """Keep only the newest programmings of a region by its host.

    Their numbers tell which are newer, since the times are by the hosts'
    clocks.
    """
    of_region = (
        _TABLE.c.hostname == hostname,
        _TABLE.c.device_uuid == record.device_uuid,
        _TABLE.c.region == record.region,
    )
    newest_old = connection.scalar(
        sa.select(_TABLE.c.id)
        .where(*of_region)
        .order_by(_TABLE.c.id.desc())
        .limit(1)
        .offset(CONF.nova_accel.programmings_kept)
    )
    if newest_old is not None:
        connection.execute(
            sa.delete(_TABLE).where(*of_region, _TABLE.c.id <= newest_old)
        )


@engine.retried
def get_all(
    page: paging.Page = paging.ALL,
    *,
    deployable_uuid: str | None = None,
    **equal: str | None,
) -> list[ProgrammingRow]:
    """The programmings that match all arguments, newest first.

    :param deployable_uuid: a deployable that is in the programmed region
    :param equal: hostname, device_uuid, instance_uuid, bitstream_id or
        project_id; None matches any
    :raises InvalidRequest: there is no such marker
    """
    where = [
        _TABLE.c[name] == value
        for name, value in equal.items()
        if value is not None
    ]
    if deployable_uuid is not None:
        where.append(
            sa.exists().where(
                _DEPLOYABLES.c.uuid == deployable_uuid,
                _DEPLOYABLES.c.device_uuid == _TABLE.c.device_uuid,
                _DEPLOYABLES.c.region == _TABLE.c.region,
            )
        )
    if not page.sort:
        page = dataclasses.replace(page, sort=_NEWEST_FIRST)
    with engine.reader() as connection:
        return pages.read(
            connection,
            ProgrammingRow,
            sa.select(_TABLE),
            where,
            page,
            _TABLE,
            SORT_KEYS,
        )


def _insert(connection: sa.Connection, row: dict[str, Any]) -> None:
    with engine.raced(
        exceptions.Conflict(
            f'programming {row["uuid"]} is being noted already'
        )
    ):
        connection.execute(sa.insert(_TABLE).values(row))
