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

"""Hosts: what devices they have, and when they last said so."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import engine
from nova_accel.db import schema

#: The rows of one table by their uuid.
_Rows = dict[str, dict[str, Any]]

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_DEVICE_FACTS = ('uuid', 'name', 'type', 'vendor_id', 'vendor', 'product_id',
                 'product', 'address', 'driver', 'numa_node')
_DEPLOYABLE_FACTS = ('uuid', 'name', 'rp_uuid', 'resource_class', 'traits')
_HANDLE_FACTS = ('uuid', 'type', 'info')


@engine.retried
def report(hostname: str, node_uuid: str, service_host: str,
           devices: Sequence[Mapping[str, Any]], digest: str) -> None:
    """Note what devices a host has: all of them, the others are gone.

    A handle that is gone but taken stays, and so do its deployable and its
    device, until it is given back.

    :param devices: as :meth:`nova_accel.model.device.Device.to_report`
    :param digest: anything that differs when ``devices`` do; the same as
        last time makes this one statement
    :raises Conflict: a device is another host's
    """
    facts = {'node_uuid': node_uuid, 'service_host': service_host,
             'report_digest': digest}
    with engine.writer() as connection:
        same = sa.and_(_HOSTS.c.hostname == hostname, *(
            _HOSTS.c[name] == value for name, value in facts.items()))
        if not _update_host(connection, same, {}):
            known = _HOSTS.c.hostname == hostname
            if not _update_host(connection, known, facts):
                _insert_host(connection, {
                    'hostname': hostname, 'reported_at': schema.now(),
                    **facts})
            _replace(connection, hostname, devices)


def get_all(silence_s: int) -> list[dict[str, Any]]:
    """hostname, service_host, reported_at and is_silent of each, sorted.

    :param silence_s: seconds without a report after which a host is silent
    """
    query = sa.select(
        _HOSTS.c.hostname, _HOSTS.c.service_host, _HOSTS.c.reported_at,
        is_silent(silence_s).label('is_silent')).order_by(_HOSTS.c.hostname)
    with engine.reader() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


@engine.retried
def forget(hostname: str, silence_s: int) -> dict[str, int]:
    """Delete a host that will not come back, with all that it has.

    :param silence_s: seconds without a report after which a host is silent
    :returns: the names of the tables and how many rows went
    :raises NotFound: there is no such host
    :raises Conflict: it reports
    """
    arqs, fences = schema.ARQS, schema.BINDINGS
    devices = sa.select(_DEVICES.c.uuid).where(_DEVICES.c.hostname == hostname)
    deployables = sa.select(_DEPLOYABLES.c.uuid).where(
        _DEPLOYABLES.c.device_uuid.in_(devices))
    with engine.writer() as connection:
        # A report updates this row first, so none comes in between.
        connection.execute(sa.select(_HOSTS.c.id).where(
            _HOSTS.c.hostname == hostname).with_for_update())
        if hostname not in silent(connection, [hostname], silence_s):
            raise exceptions.Conflict(
                f'host {hostname} reports its devices: stop its nova-compute '
                f'and wait for {silence_s} s')
        return {table.name: connection.execute(
            sa.delete(table).where(where)).rowcount
            for table, where in (
                (_HANDLES, _HANDLES.c.deployable_uuid.in_(deployables)),
                (arqs, arqs.c.hostname == hostname),
                (_DEPLOYABLES, _DEPLOYABLES.c.device_uuid.in_(devices)),
                (_DEVICES, _DEVICES.c.hostname == hostname),
                (fences, fences.c.hostname == hostname),
                (_HOSTS, _HOSTS.c.hostname == hostname))}


def is_silent(silence_s: int) -> sa.ColumnElement[bool]:
    """Whether the last report of a host's row is older than so many seconds.

    So is that of a host without a row, in an outer join.
    """
    return sa.or_(
        _HOSTS.c.reported_at.is_(None),
        _HOSTS.c.reported_at
        < schema.now() - datetime.timedelta(seconds=silence_s))


def silent(connection: sa.Connection, hostnames: Collection[str],
           silence_s: int) -> set[str]:
    """Those of the hosts that have not reported for so many seconds.

    A part of its caller's transaction.

    :raises NotFound: names those that have never reported
    """
    query = sa.select(
        _HOSTS.c.hostname, is_silent(silence_s).label('is_silent'),
    ).where(_HOSTS.c.hostname.in_(list(hostnames)))
    found = {row.hostname: row.is_silent for row in connection.execute(query)}
    unknown = sorted(set(hostnames) - found.keys())
    if unknown:
        raise exceptions.NotFound('; '.join(
            f'Host {hostname} not found: it has never reported its devices'
            for hostname in unknown))
    return {hostname for hostname, is_so in found.items() if is_so}


def _update_host(connection: sa.Connection, where: sa.ColumnElement[bool],
                 values: Mapping[str, str]) -> bool:
    return connection.execute(sa.update(_HOSTS).where(where).values(
        reported_at=schema.now(), **values)).rowcount > 0


def _insert_host(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    try:
        connection.execute(sa.insert(_HOSTS).values(row))
    except db_exc.DBDuplicateEntry as fault:
        raise db_exc.RetryRequest(exceptions.Conflict(
            f'host {row["hostname"]} is being reported already')) from fault


def _replace(connection: sa.Connection, hostname: str,
             devices: Sequence[Mapping[str, Any]]) -> None:
    """Make the rows of the host, which is locked, those of the report."""
    wanted = {_DEVICES: _device_rows(hostname, devices),
              _DEPLOYABLES: _deployable_rows(devices),
              _HANDLES: _handle_rows(devices)}
    here = _DEVICES.c.hostname == hostname
    deployables = _DEPLOYABLES.join(_DEVICES)
    present = {
        _DEVICES: _read(connection, _DEVICES, _DEVICES, sa.or_(
            here, _DEVICES.c.uuid.in_(list(wanted[_DEVICES]))),
            ('hostname', *_DEVICE_FACTS)),
        _DEPLOYABLES: _read(connection, _DEPLOYABLES, deployables, here,
                            ('device_uuid', *_DEPLOYABLE_FACTS)),
        _HANDLES: _read(connection, _HANDLES, deployables.join(_HANDLES),
                        here, ('deployable_uuid', 'present',
                               *_HANDLE_FACTS))}
    for uuid, device in present[_DEVICES].items():
        if device['hostname'] != hostname:
            raise exceptions.Conflict(
                f'device {uuid} belongs to host {device["hostname"]}')
    at = schema.now()
    _put(connection, _DEVICES, wanted[_DEVICES], present[_DEVICES],
         {'status': 'enabled', 'created_at': at}, {'updated_at': at})
    for table in (_DEPLOYABLES, _HANDLES):
        _put(connection, table, wanted[table], present[table], {}, {})
    _remove(connection, {
        table: list(present[table].keys() - wanted[table].keys())
        for table in wanted})


def _device_rows(hostname: str,
                 devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {device['uuid']: {
        'hostname': hostname, **{name: device[name] for name in _DEVICE_FACTS}
    } for device in devices}


def _deployable_rows(devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {deployable['uuid']: {
        'device_uuid': device['uuid'],
        **{name: deployable[name] for name in _DEPLOYABLE_FACTS}
    } for device in devices for deployable in device['deployables']}


def _handle_rows(devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {handle['uuid']: {
        'deployable_uuid': deployable['uuid'], 'present': True,
        **{name: handle[name] for name in _HANDLE_FACTS}
    } for device in devices for deployable in device['deployables']
        for handle in deployable['attach_handles']}


def _read(connection: sa.Connection, table: sa.Table, source: sa.FromClause,
          where: sa.ColumnElement[bool], names: Sequence[str]) -> _Rows:
    query = sa.select(*(table.c[name] for name in names)).select_from(source)
    return {row['uuid']: dict(row)
            for row in connection.execute(query.where(where)).mappings()}


def _put(connection: sa.Connection, table: sa.Table, wanted: _Rows,
         present: _Rows, if_new: Mapping[str, Any],
         if_changed: Mapping[str, Any]) -> None:
    new = [{**row, **if_new} for uuid, row in wanted.items()
           if uuid not in present]
    if new:
        try:
            connection.execute(sa.insert(table), new)
        except db_exc.DBDuplicateEntry as fault:
            raise exceptions.Conflict(
                f'some of the {table.name} belong to another host') from fault
    changed = [{**row, **if_changed, 'of_uuid': uuid}
               for uuid, row in wanted.items()
               if uuid in present and present[uuid] != row]
    if changed:
        connection.execute(
            sa.update(table).where(table.c.uuid == sa.bindparam('of_uuid')),
            changed)


def _remove(connection: sa.Connection,
            gone: Mapping[sa.Table, list[str]]) -> None:
    handles = _HANDLES.c.uuid.in_(gone[_HANDLES])
    # In this order: one that is given back in between is deleted, either
    # here or by who gives it back.
    connection.execute(
        sa.update(_HANDLES).where(handles).values(present=False))
    connection.execute(
        sa.delete(_HANDLES).where(handles, _HANDLES.c.arq_uuid.is_(None)))
    for table, child, parent_uuid in (
            (_DEPLOYABLES, _HANDLES, _HANDLES.c.deployable_uuid),
            (_DEVICES, _DEPLOYABLES, _DEPLOYABLES.c.device_uuid)):
        connection.execute(sa.delete(table).where(
            table.c.uuid.in_(gone[table]),
            ~sa.exists(sa.select(child.c.id).where(
                parent_uuid == table.c.uuid))))
