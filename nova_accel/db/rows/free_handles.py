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

"""Reads which attach handles of some providers are free.

It takes one statement, which gives a few handles of each kind, and another one
for the units of cards of many shapes.
"""

import collections
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import functools
import random
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.rows import card_rows
from nova_accel.db.rows import demand_rows
from nova_accel.db.rows import per_row
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.units import free_units
from nova_accel.model.units import handle_stock
from nova_accel.model.units import unit_state

CONF = conf.CONF

_HANDLES = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES
_HOSTS = schema.HOSTS
_DEMAND = schema.BITSTREAM_DEMAND

_SLOT = (
    _DEVICES.c.hostname,
    _DEPLOYABLES.c.rp_uuid,
    _DEPLOYABLES.c.resource_class,
)
_ALL = (
    _DEPLOYABLES.join(_DEVICES)
    .join(_HOSTS)
    .outerjoin(_HANDLES, _HANDLES.c.deployable_uuid == _DEPLOYABLES.c.uuid)
)

# Units of one provider are of one kind if it makes no difference to anyone
# which of them a guest gets. The units of a card that is shared are of a kind
# of their own, as other cards should stay free.
_KIND = (
    _DEVICES.c.numa_node.label('numa_node'),
    _DEPLOYABLES.c.bitstream_id.label('bitstream_id'),
    sa.case(
        (_DEVICES.c.type == 'VGPU', _DEPLOYABLES.c.uuid), else_=None
    ).label('card'),
)

_IS_FREE = sa.case((unit_states.is_free(), 1), else_=None)


def _amount(condition: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """How many handles of the kind have a value."""
    return sa.func.count(condition).over(partition_by=(*_SLOT, *_KIND))


# The free handles of a kind are numbered from a random place among their uuids
# on, since two transactions should choose different ones.
_NUMBERED = sa.select(
    *_SLOT,
    *_KIND,
    _HOSTS.c.reported_at,
    _HANDLES.c.uuid,
    _amount(_IS_FREE).label('free'),
    _amount(sa.case((_HANDLES.c.present, 1), else_=None)).label('total'),
    sa.func.row_number()
    .over(
        partition_by=(*_SLOT, *_KIND),
        order_by=(
            sa.case((unit_states.is_free(), 0), else_=1),
            _HANDLES.c.uuid < sa.bindparam('first'),
            _HANDLES.c.uuid,
        ),
    )
    .label('number'),
).select_from(_ALL)


def _of_slots(
    hosts: int, providers: int
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the slots of so many hosts and providers.

    The hosts are named, too: databases that have no statistics yet make better
    plans by both.
    """
    return (
        per_row.is_one(_DEVICES.c.hostname, hosts),
        per_row.is_one(_DEPLOYABLES.c.rp_uuid, providers),
    )


# A statement that each server needs is built once, as SQLAlchemy takes longer
# to build one than to execute it.
@functools.lru_cache
def _free(hosts: int, providers: int) -> sa.Select[Any]:
    """The free handles of so many hosts and providers."""
    numbered = _NUMBERED.where(*_of_slots(hosts, providers)).subquery(
        'numbered'
    )
    return (
        sa.select(
            numbered,
            clock.now().label('now'),
            _DEMAND.c.weight,
            _DEMAND.c.counted_at,
        )
        .select_from(
            numbered.outerjoin(
                _DEMAND, _DEMAND.c.bitstream_id == numbered.c.bitstream_id
            )
        )
        .where(numbered.c.number <= sa.bindparam('amount', type_=sa.Integer))
    )


@functools.lru_cache
def _not_taken(hosts: int, providers: int) -> sa.Select[Any]:
    """Why handles of so many hosts and providers cannot be used."""
    return (
        sa.select(*_SLOT, *unit_states.CONDITION)
        .select_from(_ALL)
        .where(*_of_slots(hosts, providers), _HANDLES.c.arq_uuid.is_(None))
    )


_RANDOM = random.SystemRandom()


def read(
    connection: sa.Connection,
    wanted: Collection[handle_stock.Slot],
    numa_nodes: Iterable[int] = (),
) -> handle_stock.HandleStock:
    """The free handles of the providers; reasons too if there are too few.

    :param wanted: a slot for each handle
    :param numa_nodes: those of the host that have the cells of the guest, none
        if that does not matter
    :raises NotFound: names the providers that no host has reported
    """
    amounts = collections.Counter(wanted)
    hosts = {slot.hostname for slot in amounts}
    providers = {slot.rp_uuid for slot in amounts}
    size = len(hosts), len(providers)
    places = {
        **per_row.keys(_DEVICES.c.hostname, hosts),
        **per_row.keys(_DEPLOYABLES.c.rp_uuid, providers),
    }
    kinds, quiet = _kinds(
        connection.execute(
            _free(*size),
            {
                **places,
                'amount': max(amounts.values(), default=0),
                'first': f'{_RANDOM.getrandbits(32):08x}',
            },
        )
    )
    policies = CONF.nova_accel.unit_policies
    near = free_units.nodes_of(numa_nodes)
    cards = (
        card_rows.read(connection, providers)
        if any(naming.is_shape_class(slot.resource_class) for slot in amounts)
        else {}
    )
    found = handle_stock.HandleStock(kinds, {}, quiet, policies, near, cards)
    found.check_providers(amounts)
    if all(found.free(slot) >= amount for slot, amount in amounts.items()):
        return found
    unusable = _unusable(connection.execute(_not_taken(*size), places))
    return handle_stock.HandleStock(
        kinds, unusable, quiet, policies, near, cards
    )


def _kinds(
    rows: Iterable[sa.Row[Any]],
) -> tuple[
    dict[handle_stock.Slot, list[handle_stock.HandleKind]],
    dict[str, datetime.timedelta],
]:
    """:param rows: as :func:`_free` selects them"""
    found: dict[handle_stock.Slot, dict[str, handle_stock.HandleKind]] = {}
    quiet: dict[str, datetime.timedelta] = {}
    for row in rows:
        slot = handle_stock.Slot(row.hostname, row.rp_uuid, row.resource_class)
        quiet[slot.hostname] = row.now - row.reported_at
        name = f'{row.numa_node} {row.bitstream_id} {row.card}'
        kinds = found.setdefault(slot, {})
        if name not in kinds:
            kinds[name] = handle_stock.HandleKind(
                free_units.FreeUnits(
                    f'{slot.resource_class} {name}',
                    slot.rp_uuid,
                    slot.resource_class,
                    frozenset(),
                    row.free,
                    row.total,
                    free_units.sets_of(row.numa_node),
                    bitstream_id=row.bitstream_id,
                ),
                [],
                demand_rows.weight_now(row) if row.weight else 0.0,
            )
        if row.number <= row.free:
            kinds[name].handles.append(row.uuid)
    return {slot: _shuffled(kinds) for slot, kinds in found.items()}, quiet


def _shuffled(
    kinds: Mapping[str, handle_stock.HandleKind],
) -> list[handle_stock.HandleKind]:
    """Shuffle: each transaction chooses another of equally good kinds."""
    result = list(kinds.values())
    _RANDOM.shuffle(result)
    return result


def _unusable(
    rows: Iterable[Sequence[Any]],
) -> dict[handle_stock.Slot, list[str]]:
    """:param rows: as :func:`_not_taken` selects them"""
    reasons: dict[handle_stock.Slot, list[str]] = {}
    for row in rows:
        reason = unit_state.Condition(
            *row[len(handle_stock.Slot._fields) :]
        ).reason()
        if reason is not None:
            reasons.setdefault(
                handle_stock.Slot(*row[: len(handle_stock.Slot._fields)]), []
            ).append(reason)
    return reasons
