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

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_accel.db import engine
from nova_accel.db import findings
from nova_accel.db import host
from nova_accel.db import schema
from nova_accel.db.rows import attach_handle
from nova_accel.model import fleet_sources
from nova_accel.model import usability

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_ARQS = schema.ARQS

#: The fields of :class:`nova_accel.model.fleet_sources.Arq`.
_ARQ = (
    _ARQS.c.uuid,
    _ARQS.c.state,
    _ARQS.c.role,
    _ARQS.c.hostname,
    _ARQS.c.instance_uuid,
    _ARQS.c.resource_class,
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
)

_OF_UNITS = sa.select(
    _HANDLES.c.uuid,
    _DEPLOYABLES.c.device_uuid,
    sa.func.coalesce(_DEPLOYABLES.c.region, _DEPLOYABLES.c.name),
    _DEPLOYABLES.c.resource_class,
    _DEPLOYABLES.c.rp_uuid,
    _HANDLES.c.info,
    *attach_handle.CONDITION,
    *_ARQ,
).select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES).outerjoin(_ARQS))

# An ARQ that is bound to nothing and has no unit is a client's own.
_UNHELD = (
    sa.select(*_ARQ)
    .select_from(_ARQS.outerjoin(_HANDLES))
    .where(_HANDLES.c.uuid.is_(None), _ARQS.c.hostname.is_not(None))
)

#: Where a row of units has the condition, and where the ARQ.
_CONDITION_AT = 6
_ARQ_AT = _CONDITION_AT + len(attach_handle.CONDITION)


@engine.retried
def read(silence_s: int) -> fleet_sources.Ours:
    """The whole database, by five statements.

    :param silence_s: seconds without a report after which a host is silent
    """
    of_hosts = sa.select(
        _HOSTS.c.hostname,
        _HOSTS.c.service_host,
        host.is_silent(silence_s).label('is_silent'),
    )
    with engine.reader() as connection:
        units = connection.execute(_OF_UNITS).all()
        devices = _devices(connection)
        return fleet_sources.Ours(
            hosts=[
                fleet_sources.Host(name, service_host, bool(is_silent))
                for name, service_host, is_silent in connection.execute(
                    of_hosts
                )
            ],
            devices=devices,
            units=_units(units, {device.uuid for device in devices}),
            unheld=[
                fleet_sources.Arq(*row) for row in connection.execute(_UNHELD)
            ],
            findings=findings.read_on(connection),
        )


def _devices(connection: sa.Connection) -> list[fleet_sources.Device]:
    return [
        fleet_sources.Device(
            uuid,
            hostname,
            name,
            address,
            # Some products are reported with the name of their vendor.
            product if product.startswith(vendor) else f'{vendor} {product}',
            *rest,
        )
        for (
            uuid,
            hostname,
            name,
            address,
            vendor,
            product,
            *rest,
        ) in connection.execute(_OF_DEVICES)
    ]


def _units(
    rows: Sequence[sa.Row[Any]], devices: set[str]
) -> list[fleet_sources.Unit]:
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
            fleet_sources.Unit(
                uuid,
                device_uuid,
                part,
                resource_class,
                rp_uuid,
                '{domain}:{bus}:{device}.{function}'.format(**info),
                usability.Condition(*row[_CONDITION_AT:_ARQ_AT]),
                None if arq[0] is None else fleet_sources.Arq(*arq),
            )
        )
    return found
