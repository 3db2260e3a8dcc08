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

"""The FPGA regions without guests, and the orders to program them."""

from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.fpga import region_contents
from nova_accel.model.fpga import stocking

_TABLE = schema.STOCK_ORDERS
_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_SIBLINGS = _DEPLOYABLES.alias('siblings')

_COLUMNS = (
    _DEPLOYABLES.c.uuid.label('deployable_uuid'),
    _DEPLOYABLES.c.device_uuid,
    _DEPLOYABLES.c.region,
    _DEPLOYABLES.c.resource_class,
    _DEPLOYABLES.c.traits,
    _DEPLOYABLES.c.bitstream_id,
    _DEVICES.c.hostname,
    _DEVICES.c.attributes,
    _HOSTS.c.service_host,
    _HOSTS.c.contract,
)

#: Whether a guest has any part of the region, or it is not clean.
_IS_USED = sa.exists().where(
    _SIBLINGS.c.device_uuid == _DEPLOYABLES.c.device_uuid,
    _SIBLINGS.c.region == _DEPLOYABLES.c.region,
    _HANDLES.c.deployable_uuid == _SIBLINGS.c.uuid,
    sa.not_(unit_states.is_unused()),
)


@engine.retried
def read_idle(silence_s: int) -> list[stocking.StockedRegion]:
    """The regions that no guest has and that can be programmed.

    :param silence_s: seconds without a report after which a host is silent
    """
    query = (
        sa.select(
            *_COLUMNS,
            _TABLE.c.bitstream_id.label('ordered_id'),
            _TABLE.c.ordered_at,
            clock.now().label('now'),
        )
        .select_from(
            _DEPLOYABLES.join(_DEVICES)
            .join(_HOSTS)
            .outerjoin(
                _TABLE,
                sa.and_(
                    _TABLE.c.device_uuid == _DEPLOYABLES.c.device_uuid,
                    _TABLE.c.region == _DEPLOYABLES.c.region,
                    _TABLE.c.ordered_at > clock.ago(stocking.PAUSE_S),
                ),
            )
        )
        .where(
            _DEPLOYABLES.c.region.is_not(None),
            unit_states.is_usable(),
            sa.not_(host_rows.is_silent(silence_s)),
            sa.not_(_IS_USED),
        )
        # The same order for all bitstreams, and as good as any.
        .order_by(_DEPLOYABLES.c.uuid)
    )
    with engine.reader() as connection:
        rows = connection.execute(query).all()
    return _regions(
        row
        for row in rows
        if region_contents.fault_key(row.region) not in row.attributes
    )


@engine.retried
def read_unclean(hostname: str) -> dict[str, stocking.StockedRegion]:
    """Attach handle uuid -> the region of a host that it is to clean."""
    query = (
        sa.select(_HANDLES.c.uuid.label('handle_uuid'), *_COLUMNS)
        .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES).join(_HOSTS))
        .where(
            _DEVICES.c.hostname == hostname,
            _DEPLOYABLES.c.region.is_not(None),
            _HANDLES.c.unclean_since.is_not(None),
        )
        .order_by(_DEPLOYABLES.c.uuid)
    )
    with engine.reader() as connection:
        rows = connection.execute(query).all()
    regions = {
        (region.device_uuid, region.name): region for region in _regions(rows)
    }
    return {
        row.handle_uuid: regions[row.device_uuid, row.region] for row in rows
    }


@engine.retried
def note(orders: Collection[stocking.StockOrder]) -> None:
    """Note orders, and forget those that are old or fulfilled.

    :param orders: for regions that :func:`read_idle` gave without an order
    """
    with engine.writer() as connection:
        connection.execute(
            sa.delete(_TABLE).where(
                sa.or_(
                    _TABLE.c.ordered_at <= clock.ago(stocking.PAUSE_S),
                    sa.exists().where(
                        _DEPLOYABLES.c.device_uuid == _TABLE.c.device_uuid,
                        _DEPLOYABLES.c.region == _TABLE.c.region,
                        _DEPLOYABLES.c.bitstream_id == _TABLE.c.bitstream_id,
                    ),
                )
            )
        )
        if not orders:
            return
        now = connection.execute(sa.select(clock.now())).scalar_one()
        with engine.raced(
            exceptions.Conflict('the region is being stocked already')
        ):
            connection.execute(
                sa.insert(_TABLE),
                [
                    {
                        'device_uuid': order.region.device_uuid,
                        'region': order.region.name,
                        'bitstream_id': order.bitstream_id,
                        'ordered_at': now,
                    }
                    for order in orders
                ],
            )


def _regions(rows: Iterable[sa.Row[Any]]) -> list[stocking.StockedRegion]:
    """The regions of deployables, each of them once."""
    found: dict[tuple[str, str], stocking.StockedRegion] = {}
    for row in rows:
        region = _region(row)
        known = found.setdefault((region.device_uuid, region.name), region)
        if known is not region:
            found[region.device_uuid, region.name] = dataclasses.replace(
                known, traits=known.traits & region.traits
            )
    return list(found.values())


def _region(row: sa.Row[Any]) -> stocking.StockedRegion:
    order = row._mapping.get('ordered_id')
    return stocking.StockedRegion(
        device_uuid=row.device_uuid,
        name=row.region,
        hostname=row.hostname,
        service_host=row.service_host,
        contract=row.contract,
        deployable_uuid=row.deployable_uuid,
        resource_class=row.resource_class,
        traits=frozenset(row.traits),
        bitstream_id=row.bitstream_id,
        ordered=None
        if order in (None, row.bitstream_id)
        else stocking.Ordered(
            order, (row.now - row.ordered_at).total_seconds()
        ),
    )
