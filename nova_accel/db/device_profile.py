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

"""Device profiles in the database."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime

from oslo_db import exception as db_exc
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import pages
from nova_accel.db.rows import profile_rows
from nova_accel.db.rows import typed
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import paging

_TABLE = schema.DEVICE_PROFILES
_ARQS = schema.ARQS

#: How many ARQs that use a profile are named at most.
_MAX_TOLD = 10

_COLUMNS = [
    _TABLE.c[name]
    for name in (
        'uuid',
        'name',
        'description',
        'groups',
        'created_at',
        'updated_at',
    )
]

#: The keys that device profiles can be sorted by.
SORT_KEYS = pages.columns(_TABLE, 'uuid', 'name', 'created_at', 'updated_at')


class DeviceProfileRow(profile_rows.RequestedProfile):
    """A device profile."""

    uuid: str
    description: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@engine.retried
def create(
    name: str,
    groups: Sequence[Mapping[str, str]],
    description: str | None = None,
    uuid: str | None = None,
) -> DeviceProfileRow:
    """Add a profile that the caller has checked.

    :raises Conflict: there is a profile of that name or uuid
    """
    profile: DeviceProfileRow = {
        'uuid': uuid or uuidutils.generate_uuid(),
        'name': name,
        'description': description,
        'groups': [dict(group) for group in groups],
        'created_at': schema.now().replace(microsecond=0),
        'updated_at': None,
    }
    try:
        with engine.writer() as connection:
            connection.execute(sa.insert(_TABLE).values(profile))
    except db_exc.DBDuplicateEntry as fault:
        or_uuid = '' if uuid is None else f' or with the uuid {uuid}'
        raise exceptions.Conflict(
            f'A device profile named {name}{or_uuid} exists'
        ) from fault
    return profile


@engine.retried
def get_all(
    names: Sequence[str] | None = None, page: paging.Page = paging.ALL
) -> list[DeviceProfileRow]:
    """All profiles, or those of the names that exist, oldest first.

    :raises InvalidRequest: there is no such marker
    """
    where = [] if names is None else [_TABLE.c.name.in_(names)]
    with engine.reader() as connection:
        return pages.read(
            connection,
            DeviceProfileRow,
            sa.select(*_COLUMNS),
            where,
            page,
            _TABLE,
            SORT_KEYS,
        )


@engine.retried
def get(uuid_or_name: str) -> DeviceProfileRow:
    """:raises NotFound: there is no such profile"""
    column = 'uuid' if uuidutils.is_uuid_like(uuid_or_name) else 'name'
    with engine.reader() as connection:
        return _read(connection, column, uuid_or_name)


#: Selects the groups of the profile ``name``, as they are stored.
_STORED_GROUPS = sa.select(
    sa.type_coerce(_TABLE.c.groups, sa.Text).label('groups')
).where(_TABLE.c.name == sa.bindparam('name'))


@engine.retried
def stored_groups(name: str) -> str | None:
    """The groups of a profile as JSON, None if there is no such profile.

    The text tells a caller that needs it often whether it has changed.
    """
    with engine.reader() as connection:
        groups: str | None = connection.execute(
            _STORED_GROUPS, {'name': name}
        ).scalar()
    return groups


def _read(
    connection: sa.Connection, column: str, value: str
) -> DeviceProfileRow:
    profile = (
        connection.execute(
            sa.select(*_COLUMNS).where(_TABLE.c[column] == value)
        )
        .mappings()
        .one_or_none()
    )
    if profile is None:
        raise profile_rows.not_found(column, value)
    return typed.row(DeviceProfileRow, profile)


@engine.retried
def update(
    uuid: str,
    groups: Sequence[Mapping[str, str]],
    description: str | None = None,
    name: str | None = None,
) -> DeviceProfileRow:
    """Replace all of a profile but its name; the caller has checked it.

    Existing ARQs keep their groups.

    :param name: the name that the profile must have, if the caller knows it
    :raises NotFound: there is no such profile
    :raises Conflict: it has another name
    """
    where = [_TABLE.c.uuid == uuid]
    if name is not None:
        where.append(_TABLE.c.name == name)
    with engine.writer() as connection:
        is_changed = connection.execute(
            sa.update(_TABLE)
            .where(*where)
            .values(
                groups=[dict(group) for group in groups],
                description=description,
                updated_at=schema.now(),
            )
        ).rowcount
        profile = _read(connection, 'uuid', uuid)
    if not is_changed:
        raise exceptions.Conflict(
            f'Device profile {uuid} is named {profile["name"]}, not {name}: a '
            'name cannot be changed, as flavors and ports refer to it'
        )
    return profile


def delete_by_uuid(uuid: str) -> None:
    """Delete one.

    :raises NotFound: there is no such profile
    :raises Conflict: ARQs use it
    """
    _delete('uuid', [uuid])


def delete_by_names(names: Sequence[str]) -> None:
    """Delete all of the profiles or none.

    :raises NotFound: names one that does not exist
    :raises Conflict: names one that is in use, and some of the ARQs that use
        it
    """
    _delete('name', names)


@engine.retried
def _delete(column: str, values: Sequence[str]) -> None:
    wanted = _TABLE.c[column].in_(values)
    with engine.writer() as connection:
        names = {
            row[column]: row['name']
            for row in connection.execute(
                sa.select(_TABLE.c.uuid, _TABLE.c.name)
                .where(wanted)
                .with_for_update()
            ).mappings()
        }
        for value in values:
            if value not in names:
                raise profile_rows.not_found(column, value)
        _check_not_used(connection, names.values())
        connection.execute(sa.delete(_TABLE).where(wanted))


def _check_not_used(connection: sa.Connection, names: Collection[str]) -> None:
    """Check that no ARQ refers to the profiles, as ARQs show their names."""
    used = connection.execute(
        sa.select(_ARQS.c.device_profile_name, _ARQS.c.uuid)
        .where(_ARQS.c.device_profile_name.in_(list(names)))
        .order_by(_ARQS.c.id)
        .limit(_MAX_TOLD + 1)
    ).all()
    if used:
        told = [
            row.uuid
            for row in used
            if row.device_profile_name == used[0].device_profile_name
        ]
        more = ', ...' if len(used) > _MAX_TOLD else ''
        raise exceptions.Conflict(
            f'Device profile {used[0].device_profile_name} is in use by '
            f'accelerator requests {", ".join(told[:_MAX_TOLD])}{more}'
        )
