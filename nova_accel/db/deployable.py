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

"""Deployables: where they are, and who holds units of their regions."""

from collections.abc import Collection
from collections.abc import Sequence
import datetime
import json
from typing import TypedDict

import sqlalchemy as sa

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import attribute
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import pages
from nova_accel.db.rows import typed
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import paging

CONF = conf.CONF

_ARQS = schema.ARQS
_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

#: The keys that deployables can be sorted by, in the API's words.
SORT_KEYS: pages.Keys = {
    'driver_name': _DEVICES.c.driver,
    'device_id': _DEVICES.c.id,
    **pages.columns(_DEVICES, 'hostname', 'created_at', 'updated_at'),
    **pages.columns(
        _DEPLOYABLES,
        'uuid',
        'name',
        'rp_uuid',
        'region',
        'device_uuid',
        'bitstream_id',
    ),
}


class _Joined(TypedDict):
    """A deployable, with what is read of its device and its host."""

    id: int
    uuid: str
    device_uuid: str
    name: str
    rp_uuid: str
    resource_class: str
    traits: list[str]
    is_cleaned: bool
    region: str | None
    bitstream_id: str | None
    hostname: str
    driver: str
    #: The number of the device's row.
    device_id: int
    #: The times are those of the device.
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    service_host: str
    #: The contract of its reports.
    contract: int
    is_silent: bool
    #: How many attach handles it has, and how many of these guests have.
    units: int
    units_in_use: int


class DeployableRow(_Joined):
    """A deployable, and the keys and values that operators have noted."""

    noted: dict[str, str]


class RegionHostRow(host_rows.HostState):
    """A host that can program."""

    service_host: str
    contract: int


def get_all(
    hostname: str | None = None,
    device_uuid: str | None = None,
    bitstream_id: str | None = None,
    name: str | None = None,
    page: paging.Page = paging.ALL,
) -> list[DeployableRow]:
    """The deployables that match all arguments, oldest first.

    :raises InvalidRequest: there is no such marker
    """
    where = []
    if hostname is not None:
        where.append(_DEVICES.c.hostname == hostname)
    if device_uuid is not None:
        where.append(_DEVICES.c.uuid == device_uuid)
    if bitstream_id is not None:
        where.append(_DEPLOYABLES.c.bitstream_id == bitstream_id)
    if name is not None:
        where.append(_DEPLOYABLES.c.name == name)
    return _read(where, page)


def get(uuid: str) -> DeployableRow:
    """One deployable, as in :func:`get_all`.

    :raises NotFound: there is none
    """
    found = _read([_DEPLOYABLES.c.uuid == uuid])
    if not found:
        raise exceptions.NotFound(f'Deployable not found with uuid={uuid}')
    return found[0]


def get_of_arq(arq_uuid: str, project_id: str | None = None) -> DeployableRow:
    """The deployable that an ARQ has a unit of, as in :func:`get_all`.

    :param project_id: the only project whose ARQ counts; None for any
    :raises NotFound: there is no such ARQ, or it is not bound
    """
    has = (
        sa.select(_HANDLES.c.deployable_uuid)
        .select_from(_HANDLES.join(_ARQS))
        .where(_ARQS.c.uuid == arq_uuid)
    )
    if project_id is not None:
        has = has.where(_ARQS.c.project_id == project_id)
    found = _read([_DEPLOYABLES.c.uuid.in_(has)])
    if not found:
        raise exceptions.NotFound(f'Deployable not found with uuid={arq_uuid}')
    return found[0]


@engine.retried
def get_holders(
    device_uuid: str,
    region: str | None = None,
) -> set[tuple[str | None, str | None]]:
    """(Project, instance uuid) of all ARQs that hold a unit of a region.

    Each is None where the ARQ has none.

    :param region: None for the device as a whole
    """
    query = (
        sa.select(_ARQS.c.project_id, _ARQS.c.instance_uuid)
        .select_from(_DEPLOYABLES.join(_HANDLES).join(_ARQS))
        .where(_DEPLOYABLES.c.device_uuid == device_uuid)
    )
    if region is not None:
        query = query.where(_DEPLOYABLES.c.region == region)
    with engine.reader() as connection:
        return {
            (row.project_id, row.instance_uuid)
            for row in connection.execute(query)
        }


@engine.retried
def get_traits(resource_classes: Collection[str]) -> dict[str, set[str]]:
    """Resource class -> all traits that devices of any host have.

    A class of which there is no device is left out.
    """
    # As a text, since few of them differ.
    traits = sa.type_coerce(_DEPLOYABLES.c.traits, sa.Text)
    query = (
        sa.select(_DEPLOYABLES.c.resource_class, traits)
        .where(_DEPLOYABLES.c.resource_class.in_(list(resource_classes)))
        .distinct()
    )
    found: dict[str, set[str]] = {}
    with engine.reader() as connection:
        for resource_class, text in connection.execute(query):
            found.setdefault(resource_class, set()).update(json.loads(text))
    return found


@engine.retried
def get_class_sets(resource_classes: Collection[str]) -> set[frozenset[str]]:
    """Which of the resource classes providers have, each set once."""
    query = (
        sa.select(_DEPLOYABLES.c.rp_uuid, _DEPLOYABLES.c.resource_class)
        .where(_DEPLOYABLES.c.resource_class.in_(list(resource_classes)))
        .distinct()
    )
    found: dict[str, set[str]] = {}
    with engine.reader() as connection:
        for rp_uuid, resource_class in connection.execute(query):
            found.setdefault(rp_uuid, set()).add(resource_class)
    return set(map(frozenset, found.values()))


@engine.retried
def get_link_sets(resource_classes: Collection[str]) -> set[str]:
    """The sets of joined devices that have units of these classes."""
    # As a text, since few of them differ.
    link_sets = sa.type_coerce(_DEVICES.c.link_sets, sa.Text)
    query = (
        sa.select(link_sets)
        .select_from(_DEPLOYABLES.join(_DEVICES))
        .where(_DEPLOYABLES.c.resource_class.in_(list(resource_classes)))
        .distinct()
    )
    with engine.reader() as connection:
        return {
            place
            for text in connection.scalars(query)
            for place in json.loads(text)
        }


@engine.retried
def get_hosts_of_regions() -> list[RegionHostRow]:
    """The hosts that can program, sorted by their names."""
    has_region = sa.exists().where(
        _DEVICES.c.hostname == _HOSTS.c.hostname,
        _DEPLOYABLES.c.device_uuid == _DEVICES.c.uuid,
        _DEPLOYABLES.c.region.is_not(None),
    )
    query = (
        sa.select(
            _HOSTS.c.hostname,
            _HOSTS.c.service_host,
            _HOSTS.c.contract,
            _is_silent(),
        )
        .where(has_region)
        .order_by(_HOSTS.c.hostname)
    )
    with engine.reader() as connection:
        return typed.rows(RegionHostRow, connection.execute(query))


def _is_silent() -> sa.Label[bool]:
    return host_rows.is_silent(CONF.nova_accel.host_silence_s).label(
        'is_silent'
    )


@engine.retried
def _read(
    where: Sequence[sa.ColumnElement[bool]], page: paging.Page = paging.ALL
) -> list[DeployableRow]:
    its_own = _HANDLES.c.deployable_uuid == _DEPLOYABLES.c.uuid
    units = sa.select(sa.func.count()).select_from(_HANDLES)
    query = sa.select(
        _DEPLOYABLES,
        _DEVICES.c.hostname,
        _DEVICES.c.driver,
        _DEVICES.c.id.label('device_id'),
        _DEVICES.c.created_at,
        _DEVICES.c.updated_at,
        _HOSTS.c.service_host,
        _HOSTS.c.contract,
        _is_silent(),
        units.where(its_own, _HANDLES.c.present)
        .scalar_subquery()
        .label('units'),
        units.where(its_own, _HANDLES.c.arq_uuid.is_not(None))
        .scalar_subquery()
        .label('units_in_use'),
    ).select_from(_DEPLOYABLES.join(_DEVICES).join(_HOSTS))
    with engine.reader() as connection:
        rows = pages.read(
            connection, _Joined, query, where, page, _DEPLOYABLES, SORT_KEYS
        )
        if not page.is_all(len(rows)):
            where = [_DEPLOYABLES.c.uuid.in_([row['uuid'] for row in rows])]
        noted = attribute.noted(connection, *where)
    return [{**row, 'noted': noted.get(row['uuid'], {})} for row in rows]
