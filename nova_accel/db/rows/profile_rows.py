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

"""The name and the groups of a device profile that a server asks for."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypedDict
from typing import TypeVar

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import typed
from nova_accel.db.sql import schema

_TABLE = schema.DEVICE_PROFILES


class RequestedProfile(TypedDict):
    """The name and the groups of a profile."""

    name: str
    groups: Sequence[Mapping[str, str]]


_R = TypeVar('_R')

#: Selects the profile ``name``, for :func:`read_requested`. It is built once,
#: as each server needs it.
REQUESTED = sa.select(_TABLE.c.name, _TABLE.c.groups).where(
    _TABLE.c.name == sa.bindparam('name')
)


def read_requested(
    connection: sa.Connection,
    name: str,
    kind: type[_R],
    query: sa.Select[Any],
    **parameters: Any,
) -> _R:
    """The name and the groups of a profile.

    :param kind: :class:`RequestedProfile`, or one with the further columns of
        the query
    :param query: :data:`REQUESTED`, possibly with further columns
    :param parameters: the values that the further columns need
    :raises NotFound: there is no such profile
    """
    profile = (
        connection.execute(query, {'name': name, **parameters})
        .mappings()
        .one_or_none()
    )
    if profile is None:
        raise not_found('name', name)
    return typed.row(kind, profile)


def read_alternatives(
    connection: sa.Connection, names: Sequence[str]
) -> list[RequestedProfile]:
    """The profiles that there are of those with the names, in their order.

    :raises NotFound: there is none of them
    """
    found = {
        row['name']: typed.row(RequestedProfile, row)
        for row in connection.execute(
            sa.select(_TABLE.c.name, _TABLE.c.groups).where(
                _TABLE.c.name.in_(names)
            )
        ).mappings()
    }
    if not found:
        raise not_found('name', ', '.join(names))
    return [found[name] for name in names if name in found]


def not_found(column: str, value: str) -> exceptions.NotFound:
    """The fault that names the profile that there is not."""
    return exceptions.NotFound(
        f'Device Profile not found with {column}={value}'
    )
