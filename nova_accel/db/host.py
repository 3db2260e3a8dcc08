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

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import engine
from nova_accel.db import inventory
from nova_accel.db import orders as order_rows
from nova_accel.db import schema
from nova_accel.model import orders

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


@engine.retried
def report(hostname: str, node_uuid: str, service_host: str,
           devices: Sequence[Mapping[str, Any]], digest: str,
           orders_seen: int | None = None) -> orders.Orders | None:
    """Note what devices a host has, and tell it what to do.

    :param devices: as :meth:`nova_accel.model.device.Device.to_report`; the
        others are gone
    :param digest: anything that differs when ``devices`` do
    :param orders_seen: the revision of the orders that the host knows
    :returns: the orders; None if they and the digest are as last time, which
        takes one statement
    :raises Conflict: a device is another host's
    """
    facts = {'node_uuid': node_uuid, 'service_host': service_host,
             'report_digest': digest}
    same = sa.and_(_HOSTS.c.hostname == hostname, *(
        _HOSTS.c[name] == value for name, value in facts.items()))
    with engine.writer() as connection:
        if orders_seen is not None and _update_host(
                connection, sa.and_(same, _HOSTS.c.orders == orders_seen),
                {}):
            return None
        if not _update_host(connection, same, {}):
            known = _HOSTS.c.hostname == hostname
            if not _update_host(connection, known, facts):
                _insert_host(connection, {
                    'hostname': hostname, 'reported_at': schema.now(),
                    **facts})
            inventory.replace(connection, hostname, devices)
        return order_rows.read(connection, hostname)


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
    with engine.raced(exceptions.Conflict(
            f'host {row["hostname"]} is being reported already')):
        connection.execute(sa.insert(_HOSTS).values(row))
