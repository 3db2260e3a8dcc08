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

"""What devices a host has, as its report says: all of them.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import schema
from nova_accel.model import device as device_model

#: The rows of one table by their uuid.
_Rows = dict[str, dict[str, Any]]

_ARQS = schema.ARQS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_DEVICE_FACTS = ('uuid', 'name', 'type', 'vendor_id', 'vendor', 'product_id',
                 'product', 'address', 'driver', 'numa_node')
_DEPLOYABLE_FACTS = ('uuid', 'name', 'rp_uuid', 'resource_class', 'traits')
_HANDLE_FACTS = ('uuid', 'type', 'info')

#: What a nova-compute that is older than the API leaves out.
_DEVICE_DEFAULTS: Mapping[str, Any] = {'fault': None, 'attributes': {}}
_DEPLOYABLE_DEFAULTS: Mapping[str, Any] = {
    'is_cleaned': False, 'region': None, 'bitstream_id': None}


def replace(connection: sa.Connection, hostname: str,
            devices: Sequence[Mapping[str, Any]]) -> None:
    """Make the rows of the host, which is locked, those of the report.

    What is gone stays for as long as something is to be remembered of it: a
    handle that is taken or unclean, with its deployable and its device, and a
    device that an administrator has disabled.

    :param devices: as :meth:`nova_accel.model.device.Device.to_report`
    :raises Conflict: a device is another host's
    """
    wanted = {_DEVICES: _device_rows(hostname, devices),
              _DEPLOYABLES: _deployable_rows(devices),
              _HANDLES: _handle_rows(devices)}
    here = _DEVICES.c.hostname == hostname
    deployables = _DEPLOYABLES.join(_DEVICES)
    present = {
        _DEVICES: _read(connection, _DEVICES, _DEVICES, sa.or_(
            here, _DEVICES.c.uuid.in_(list(wanted[_DEVICES]))),
            ('hostname', *_DEVICE_FACTS, *_DEVICE_DEFAULTS)),
        _DEPLOYABLES: _read(connection, _DEPLOYABLES, deployables, here,
                            ('device_uuid', *_DEPLOYABLE_FACTS,
                             *_DEPLOYABLE_DEFAULTS)),
        _HANDLES: _read(connection, _HANDLES, deployables.join(_HANDLES),
                        here, ('deployable_uuid', 'present',
                               *_HANDLE_FACTS))}
    for uuid, device in present[_DEVICES].items():
        if device['hostname'] != hostname:
            raise exceptions.Conflict(
                f'device {uuid} belongs to host {device["hostname"]}: if that '
                f'is a former name of {hostname}, have "nova-accel-manage '
                'host forget" forget it')
    at = schema.now()
    _put(connection, _DEVICES, wanted[_DEVICES], present[_DEVICES],
         {'status': device_model.Status.ENABLED, 'created_at': at},
         {'updated_at': at})
    for table in (_DEPLOYABLES, _HANDLES):
        _put(connection, table, wanted[table], present[table], {}, {})
    if (_differ(wanted[_DEPLOYABLES], present[_DEPLOYABLES], 'rp_uuid')
            or _differ(wanted[_HANDLES], present[_HANDLES],
                       'deployable_uuid')):
        _let_arqs_follow(connection, hostname)
    _remove(connection, {
        table: list(present[table].keys() - wanted[table].keys())
        for table in wanted})


def _device_rows(hostname: str,
                 devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {device['uuid']: {
        'hostname': hostname,
        **{name: device[name] for name in _DEVICE_FACTS},
        **_given(device, _DEVICE_DEFAULTS),
    } for device in devices}


def _deployable_rows(devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {deployable['uuid']: {
        'device_uuid': device['uuid'],
        **{name: deployable[name] for name in _DEPLOYABLE_FACTS},
        **_given(deployable, _DEPLOYABLE_DEFAULTS),
    } for device in devices for deployable in device['deployables']}


def _handle_rows(devices: Sequence[Mapping[str, Any]]) -> _Rows:
    return {handle['uuid']: {
        'deployable_uuid': deployable['uuid'], 'present': True,
        **{name: handle[name] for name in _HANDLE_FACTS}
    } for device in devices for deployable in device['deployables']
        for handle in deployable['attach_handles']}


def _given(value: Mapping[str, Any],
           defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.get(name, default)
            for name, default in defaults.items()}


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


def _differ(wanted: _Rows, present: _Rows, name: str) -> bool:
    return any(row[name] != present[uuid][name]
               for uuid, row in wanted.items() if uuid in present)


def _let_arqs_follow(connection: sa.Connection, hostname: str) -> None:
    """Give ARQs the provider that their handles are units of now."""
    its_provider = sa.select(_DEPLOYABLES.c.rp_uuid).select_from(
        _DEPLOYABLES.join(_HANDLES)).where(_HANDLES.c.arq_uuid == _ARQS.c.uuid)
    connection.execute(
        sa.update(_ARQS)
        .where(_ARQS.c.hostname == hostname, sa.exists(its_provider.where(
            _DEPLOYABLES.c.rp_uuid != _ARQS.c.device_rp_uuid)))
        .values(device_rp_uuid=its_provider.scalar_subquery(),
                updated_at=schema.now()))


def _remove(connection: sa.Connection,
            gone: Mapping[sa.Table, list[str]]) -> None:
    if not any(gone.values()):
        return
    handles = _HANDLES.c.uuid.in_(gone[_HANDLES])
    # In this order: one that is given back in between is deleted, either
    # here or by who gives it back.
    connection.execute(
        sa.update(_HANDLES).where(handles).values(present=False))
    connection.execute(
        sa.delete(_HANDLES).where(handles, _HANDLES.c.arq_uuid.is_(None),
                                  _HANDLES.c.unclean_since.is_(None)))
    connection.execute(sa.delete(_DEPLOYABLES).where(
        _DEPLOYABLES.c.uuid.in_(gone[_DEPLOYABLES]),
        ~sa.exists().where(
            _HANDLES.c.deployable_uuid == _DEPLOYABLES.c.uuid)))
    connection.execute(sa.delete(_DEVICES).where(
        _DEVICES.c.uuid.in_(gone[_DEVICES]),
        _DEVICES.c.status == device_model.Status.ENABLED,
        ~sa.exists().where(_DEPLOYABLES.c.device_uuid == _DEVICES.c.uuid)))
