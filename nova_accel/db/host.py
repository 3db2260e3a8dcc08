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


@engine.retried
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
        lock(connection, hostname)
        is_silent_now = connection.scalar(
            sa.select(is_silent(silence_s))
            .where(_HOSTS.c.hostname == hostname))
        if is_silent_now is None:
            raise _not_found([hostname])
        if not is_silent_now:
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


def lock(connection: sa.Connection, hostname: str) -> None:
    """Hold a host's row, which a report updates first: none comes in between.

    A part of its caller's transaction. There may be no such host.
    """
    connection.execute(sa.select(_HOSTS.c.id).where(
        _HOSTS.c.hostname == hostname).with_for_update())


def is_silent(silence_s: int) -> sa.ColumnElement[bool]:
    """Whether the last report of a host's row is older than so many seconds.

    So is that of a host without a row, in an outer join.
    """
    return is_silent_since(silent_since(silence_s))


def is_silent_since(
    moment: datetime.datetime | sa.BindParameter[datetime.datetime],
) -> sa.ColumnElement[bool]:
    """The same, with a moment of :func:`silent_since`."""
    return sa.or_(
        _HOSTS.c.reported_at.is_(None), _HOSTS.c.reported_at < moment)


def silent_since(silence_s: int) -> datetime.datetime:
    """A host whose last report is older than this is silent."""
    return schema.now() - datetime.timedelta(seconds=silence_s)


def check_known(connection: sa.Connection,
                hostnames: Collection[str]) -> None:
    """A part of its caller's transaction.

    :raises NotFound: names those that have never reported
    """
    known = connection.scalars(sa.select(_HOSTS.c.hostname).where(
        _HOSTS.c.hostname.in_(list(hostnames))))
    unknown = sorted(set(hostnames).difference(known))
    if unknown:
        raise _not_found(unknown)


def _not_found(hostnames: Collection[str]) -> exceptions.NotFound:
    return exceptions.NotFound('; '.join(
        f'Host {hostname} not found: it has never reported its devices'
        for hostname in hostnames))


def _update_host(connection: sa.Connection, where: sa.ColumnElement[bool],
                 values: Mapping[str, str]) -> bool:
    return connection.execute(sa.update(_HOSTS).where(where).values(
        reported_at=schema.now(), **values)).rowcount > 0


def _insert_host(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    with engine.raced(exceptions.Conflict(
            f'host {row["hostname"]} is being reported already')):
        connection.execute(sa.insert(_HOSTS).values(row))
