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


"""All hosts, devices and units, with the ARQs that have them."""

from collections.abc import Iterable
from collections.abc import Sequence
import datetime
from typing import Any
from typing import NamedTuple

import sqlalchemy as sa

from nova_accel.db import draining
from nova_accel.db import findings
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import host_drain
from nova_accel.model.units import unit_state

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_ARQS = schema.ARQS
_FINDINGS = schema.FINDINGS

#: The fields of :class:`nova_accel.model.fleet.fleet_sources.FleetArq`.
_ARQ = (
    _ARQS.c.uuid,
    _ARQS.c.state,
    _ARQS.c.role,
    _ARQS.c.hostname,
    _ARQS.c.instance_uuid,
    _ARQS.c.resource_class,
    _ARQS.c.project_id,
)

_OF_DEVICES = sa.select(
    _DEVICES.c.uuid,
    _DEVICES.c.hostname,
    _DEVICES.c.name,
    _DEVICES.c.address,
    _DEVICES.c.vendor,
    _DEVICES.c.product,
    _DEVICES.c.numa_node,
    _DEVICES.c.status,
    _DEVICES.c.fault,
    _DEVICES.c.link_sets,
)

_OF_UNITS = sa.select(
    _HANDLES.c.uuid,
    _DEPLOYABLES.c.device_uuid,
    sa.func.coalesce(_DEPLOYABLES.c.region, _DEPLOYABLES.c.name),
    _DEPLOYABLES.c.resource_class,
    _DEPLOYABLES.c.rp_uuid,
    _HANDLES.c.info,
    *unit_states.CONDITION,
    *_ARQ,
).select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES).outerjoin(_ARQS))

#: How many devices, units, ARQs and findings a host has, each device counted
#: once at least.
_AMOUNT = (
    sa.select(sa.func.count())
    .select_from(_DEVICES.outerjoin(_DEPLOYABLES).outerjoin(_HANDLES))
    .where(_DEVICES.c.hostname == _HOSTS.c.hostname)
    .correlate(_HOSTS)
    .scalar_subquery()
    + sa.select(sa.func.count())
    .where(_ARQS.c.hostname == _HOSTS.c.hostname)
    .correlate(_HOSTS)
    .scalar_subquery()
    + sa.select(sa.func.count())
    .where(_FINDINGS.c.hostname == _HOSTS.c.hostname)
    .correlate(_HOSTS)
    .scalar_subquery()
)

# An ARQ that is bound to nothing and has no unit is a client's own.
_UNHELD = (
    sa.select(*_ARQ)
    .select_from(_ARQS.outerjoin(_HANDLES))
    .where(_HANDLES.c.uuid.is_(None), _ARQS.c.hostname.is_not(None))
)

#: Where a row of units has the condition, and where the ARQ.
_CONDITION_AT = 6
_ARQ_AT = _CONDITION_AT + len(unit_states.CONDITION)


#: A page ends before the host with which it would have more devices, units,
#: ARQs and findings. One takes half a KiB of JSON.
MAX_ON_A_PAGE = 1500


class FleetPage(NamedTuple):
    """Some hosts; ``last`` is the last one's name if there may be more."""

    ours: fleet_sources.Ours
    last: str | None


@engine.retried
def read(silence_s: int) -> fleet_sources.Ours:
    """The whole database, by five statements.

    :param silence_s: seconds without a report after which a host is silent
    """
    with engine.reader() as connection:
        return _ours(connection, connection.execute(_hosts(silence_s)).all())


@engine.retried
def read_page(
    silence_s: int,
    limit: int,
    after: str | None = None,
    hostname: str | None = None,
) -> FleetPage:
    """Some hosts in the order of their names, by five statements.

    An ARQ that is bound to a host that has never reported is on the page where
    the host would be.

    :param limit: the number of hosts
    :param after: the host before the first one
    :param hostname: the only host
    :raises NotFound: nothing is known of this host
    """
    asked = _hosts(silence_s).add_columns(_AMOUNT)
    bound = []
    if after is not None:
        asked = asked.where(_HOSTS.c.hostname > after)
        bound.append(_ARQS.c.hostname > after)
    if hostname is not None:
        asked = asked.where(_HOSTS.c.hostname == hostname)
        bound.append(_ARQS.c.hostname == hostname)
    with engine.reader() as connection:
        rows = connection.execute(
            asked.order_by(_HOSTS.c.hostname).limit(limit)
        ).all()
        hosts = _fitting(rows)
        last = None
        if len(hosts) < len(rows) or len(rows) == limit:
            last = hosts[-1][0]
            bound.append(_ARQS.c.hostname <= last)
        names = [host[0] for host in hosts]
        ours = _ours(
            connection,
            hosts,
            [_DEVICES.c.hostname.in_(names)],
            bound,
            [_FINDINGS.c.hostname.in_(names)],
        )
        if hostname is not None and not hosts and not ours.unheld:
            host_rows.check_known(connection, [hostname])
        return FleetPage(ours, last)


def _fitting(rows: Sequence[sa.Row[Any]]) -> list[tuple[Any, ...]]:
    """The hosts that a page has room for, the first one in any case."""
    hosts: list[tuple[Any, ...]] = []
    total = 0
    for *of_host, amount in rows:
        total += amount
        if hosts and total > MAX_ON_A_PAGE:
            break
        hosts.append(tuple(of_host))
    return hosts


def _hosts(silence_s: int) -> sa.Select[Any]:
    return sa.select(
        _HOSTS.c.hostname,
        _HOSTS.c.service_host,
        host_rows.is_silent(silence_s).label('is_silent'),
        _HOSTS.c.drained_at,
        _HOSTS.c.drain_reason,
        _HOSTS.c.drained_until,
        draining.IS_OVERDUE,
    )


def _ours(
    connection: sa.Connection,
    hosts: Iterable[Sequence[Any]],
    of_devices: Iterable[sa.ColumnElement[bool]] = (),
    of_arqs: Iterable[sa.ColumnElement[bool]] = (),
    of_findings: Iterable[sa.ColumnElement[bool]] = (),
) -> fleet_sources.Ours:
    """The hosts with their devices and units, by four statements.

    :param of_devices: conditions for the devices that are wanted
    :param of_arqs: conditions for the ARQs without units that are wanted
    :param of_findings: conditions for the findings that are wanted
    """
    units = connection.execute(_OF_UNITS.where(*of_devices)).all()
    devices = _devices(connection.execute(_OF_DEVICES.where(*of_devices)))
    return fleet_sources.Ours(
        hosts=[_host(*row) for row in hosts],
        devices=devices,
        units=_units(units, {device.uuid for device in devices}),
        unheld=[
            fleet_sources.FleetArq(*row)
            for row in connection.execute(_UNHELD.where(*of_arqs))
        ],
        findings=findings.read_on(connection, *of_findings),
    )


def _host(
    name: str,
    service_host: str,
    is_silent: bool,
    drained_at: datetime.datetime | None,
    reason: str | None,
    until: datetime.datetime | None,
    is_overdue: bool,
) -> fleet_sources.FleetHost:
    return fleet_sources.FleetHost(
        name,
        service_host,
        bool(is_silent),
        None
        if drained_at is None
        else host_drain.HostDrain(reason or '', until, bool(is_overdue)),
    )


def _devices(rows: Iterable[sa.Row[Any]]) -> list[fleet_sources.FleetDevice]:
    return [
        fleet_sources.FleetDevice(
            uuid,
            hostname,
            name,
            address,
            # Some products are reported with the name of their vendor.
            product if product.startswith(vendor) else f'{vendor} {product}',
            numa_node,
            status,
            fault,
            tuple(link_sets),
        )
        for (
            uuid,
            hostname,
            name,
            address,
            vendor,
            product,
            numa_node,
            status,
            fault,
            link_sets,
        ) in rows
    ]


def _units(
    rows: Sequence[sa.Row[Any]], devices: set[str]
) -> list[fleet_sources.FleetUnit]:
    found = []
    for row in rows:
        uuid, device_uuid, part, resource_class, rp_uuid, info = row[
            :_CONDITION_AT
        ]
        # Its host may have lost the device between two statements.
        if device_uuid not in devices:
            continue
        arq = row[_ARQ_AT:]
        found.append(
            fleet_sources.FleetUnit(
                uuid,
                device_uuid,
                part,
                resource_class,
                rp_uuid,
                '{domain}:{bus}:{device}.{function}'.format(**info),
                unit_state.Condition(*row[_CONDITION_AT:_ARQ_AT]),
                None if arq[0] is None else fleet_sources.FleetArq(*arq),
            )
        )
    return found
