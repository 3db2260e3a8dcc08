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


"""Attributes of deployables, reported by hosts or noted by operators.

The reported ones are columns of deployables and devices. Here they get derived
uuids, so that each can be read by itself, too.
"""

from collections.abc import Iterator
import datetime
import itertools
from typing import Any
from typing import TypedDict

from oslo_db import exception as db_exc
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import typed
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import attribute
from nova_accel.model import naming

_TABLE = schema.ATTRIBUTES
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES


class AttributeRow(TypedDict):
    """One attribute of a deployable."""

    uuid: str
    #: The number of the deployable's row.
    deployable_id: int
    key: str
    value: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@engine.retried
def get_all(
    deployable: int | str | None = None,
    key: str | None = None,
    limit: int | None = None,
) -> list[AttributeRow]:
    """The attributes that match all arguments, sorted by deployable.

    A reported attribute is as old as its device, and comes before the noted
    ones.

    :param deployable: its uuid, or the number of its row
    :param limit: how many at most; any of them if there are more
    """
    where = () if deployable is None else (_is_deployable(deployable),)
    with engine.reader() as connection:
        every = itertools.chain(
            _reported(connection, *where), _noted(connection, *where)
        )
        found = list(
            itertools.islice(
                (row for row in every if key in (None, row['key'])), limit
            )
        )
    # The sort is stable, so it keeps the order within a deployable.
    return sorted(found, key=lambda row: row['deployable_id'])


@engine.retried
def get(uuid: str) -> AttributeRow:
    """One attribute, as in :func:`get_all`.

    :raises NotFound: there is none
    """
    with engine.reader() as connection:
        noted = _noted(connection, _TABLE.c.uuid == uuid)
        # A reported one is searched among all of them, as few callers ask.
        found = noted or [
            row for row in _reported(connection) if row['uuid'] == uuid
        ]
    if not found:
        raise _not_found(uuid)
    return found[0]


@engine.retried
def create(deployable: int | str, key: str, value: str) -> AttributeRow:
    """Note an attribute of a deployable.

    :param deployable: its uuid, or the number of its row
    :raises NotFound: there is no such deployable
    :raises Conflict: it has an attribute of that key
    """
    uuid = uuidutils.generate_uuid()
    with engine.writer() as connection:
        found = connection.execute(
            _facts_of_deployables().where(_is_deployable(deployable)),
        ).one_or_none()
        if found is None:
            raise _no_deployable(deployable)
        if key in _of_host(found):
            raise exceptions.Conflict(
                f'Attribute {key} of deployable {found.uuid} is reported by '
                'its host'
            )
        try:
            connection.execute(
                sa.insert(_TABLE).values(
                    uuid=uuid,
                    deployable_uuid=found.uuid,
                    key=key,
                    value=value,
                    created_at=schema.now(),
                )
            )
        except db_exc.DBDuplicateEntry as fault:
            raise exceptions.Conflict(
                f'Deployable {found.uuid} has an attribute {key}: delete it '
                'first'
            ) from fault
        except db_exc.DBReferenceError as fault:
            # Its host has just reported that it is gone.
            raise _no_deployable(deployable) from fault
        return _noted(connection, _TABLE.c.uuid == uuid)[0]


@engine.retried
def delete(uuid: str) -> None:
    """Delete an attribute that an operator has noted.

    :raises NotFound: there is no such attribute
    :raises Conflict: a host reports it
    """
    with engine.writer() as connection:
        if connection.execute(
            sa.delete(_TABLE).where(_TABLE.c.uuid == uuid)
        ).rowcount:
            return
        if any(row['uuid'] == uuid for row in _reported(connection)):
            raise exceptions.Conflict(
                f'Attribute {uuid} is reported by the host of its deployable'
            )
    raise _not_found(uuid)


def noted(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> dict[str, dict[str, str]]:
    """Deployable uuid -> key -> value, of what operators have noted.

    A part of its caller's transaction.

    :param where: of the rows of deployables, devices and hosts
    """
    found: dict[str, dict[str, str]] = {}
    query = (
        sa.select(
            _TABLE.c.deployable_uuid,
            _TABLE.c.key,
            _TABLE.c.value,
        )
        .select_from(
            _TABLE.join(_DEPLOYABLES).join(_DEVICES).join(schema.HOSTS)
        )
        .where(*where)
        .order_by(_TABLE.c.id)
    )
    for row in connection.execute(query):
        found.setdefault(row.deployable_uuid, {})[row.key] = row.value
    return found


def _no_deployable(deployable: int | str) -> exceptions.NotFound:
    kind = 'id' if isinstance(deployable, int) else 'uuid'
    return exceptions.NotFound(
        f'Deployable not found with {kind}={deployable}'
    )


def _is_deployable(deployable: int | str) -> sa.ColumnElement[bool]:
    column = (
        _DEPLOYABLES.c.id
        if isinstance(deployable, int)
        else _DEPLOYABLES.c.uuid
    )
    return column == deployable


def _facts_of_deployables() -> sa.Select[Any]:
    return sa.select(
        _DEPLOYABLES.c.id,
        _DEPLOYABLES.c.uuid,
        _DEPLOYABLES.c.traits,
        _DEPLOYABLES.c.resource_class,
        _DEVICES.c.attributes,
        _DEVICES.c.created_at,
    ).select_from(_DEPLOYABLES.join(_DEVICES))


def _of_host(deployable: sa.Row[Any]) -> dict[str, str]:
    return attribute.reported(
        deployable.traits,
        deployable.resource_class,
        deployable.attributes,
    )


def _reported(
    connection: sa.Connection,
    *where: sa.ColumnElement[bool],
) -> Iterator[AttributeRow]:
    query = _facts_of_deployables().where(*where).order_by(_DEPLOYABLES.c.id)
    for deployable in connection.execute(query):
        for key, value in _of_host(deployable).items():
            yield {
                'uuid': naming.derived_uuid(deployable.uuid, 'attribute', key),
                'deployable_id': deployable.id,
                'key': key,
                'value': value,
                'created_at': deployable.created_at,
                'updated_at': None,
            }


def _noted(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> list[AttributeRow]:
    query = (
        sa.select(
            _TABLE.c.uuid,
            _DEPLOYABLES.c.id.label('deployable_id'),
            _TABLE.c.key,
            _TABLE.c.value,
            _TABLE.c.created_at,
            _TABLE.c.updated_at,
        )
        .select_from(_TABLE.join(_DEPLOYABLES))
        .where(*where)
        .order_by(_TABLE.c.id)
    )
    return typed.rows(AttributeRow, connection.execute(query))


def _not_found(uuid: str) -> exceptions.NotFound:
    return exceptions.NotFound(f'Attribute not found with uuid={uuid}')
