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

"""The bindings of accelerator requests (ARQs) that clients make.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import functools
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import per_row
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.db.sql import time_limits
from nova_accel.model import arq_types
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import handle_stock

_TABLE = schema.ARQS

#: The columns that a binding sets and an unbinding clears.
PLACE = ('hostname', 'device_rp_uuid', 'instance_uuid')

#: ARQ uuid -> hostname, device_rp_uuid, instance_uuid, and project_id if the
#: ARQ is to change its project.
Bindings = Mapping[str, Mapping[str, str]]


class RowToBind(arq_rows.UnadoptedRow):
    """A locked ARQ."""

    state: str
    resource_class: str
    device_profile_group_id: int
    group: dict[str, str]
    #: An instance of the request that has ARQs already, if there is one.
    earlier: str | None


# An instance of the request that has ARQs already. If two bindings run at
# once, the unique position makes one of them fail.
_EARLIER = _TABLE.alias('earlier')
_OF_ARQ = tuple(
    _TABLE.c[name]
    for name in (
        'uuid',
        'state',
        'resource_class',
        'device_profile_group_id',
        'group',
        'project_id',
    )
)


@functools.lru_cache
def _to_bind(arqs: int, instances: int) -> sa.Select[Any]:
    """Locks so many ARQs for so many instances."""
    return arq_rows.locking(arqs).with_only_columns(
        *_OF_ARQ,
        sa.select(_EARLIER.c.instance_uuid)
        .where(
            per_row.is_one(_EARLIER.c.instance_uuid, instances),
            _EARLIER.c.role.is_(None),
        )
        .limit(1)
        .scalar_subquery()
        .label('earlier'),
    )


def lock(
    connection: sa.Connection, bindings: Bindings
) -> dict[str, RowToBind]:
    """Lock the ARQs, and check that all of them can be bound.

    :returns: ARQ uuid -> its row
    :raises NotFound: names an ARQ that does not exist
    :raises InvalidRequest: an instance has ARQs of an earlier binding
    :raises InvalidTransition: an ARQ cannot be bound in its present state
    """
    instances = by_instance(bindings)
    rows = {
        row['uuid']: row
        for row in arq_rows.lock_each(
            connection,
            bindings,
            RowToBind,
            _to_bind(len(bindings), len(instances)),
            **per_row.keys(_EARLIER.c.instance_uuid, instances),
        )
    }
    _check_bindable(rows)
    return rows


def write(
    connection: sa.Connection,
    rows: Mapping[str, RowToBind],
    bindings: Bindings,
    why: Mapping[str, str],
    failed: Mapping[str, exceptions.AcceleratorsBusy],
) -> None:
    """Write which ARQs are bound, and which could not be.

    :param rows: of :func:`lock`
    :param why: ARQ uuid -> why its handle was chosen, if it gets one
    :param failed: ARQ uuid -> why it gets none
    :raises Conflict: other bindings were first
    """
    places = _places(rows, bindings)
    bind_ms = time_limits.taken_ms()
    _place(
        connection,
        arq_types.State.BOUND,
        [
            {**places[uuid], 'chosen_because': text, 'bind_ms': bind_ms}
            for uuid, text in why.items()
        ],
    )
    _place(
        connection,
        arq_types.State.BIND_FAILED,
        [
            {
                **places[uuid],
                'reason': reason.sanitize(fault.summary),
                'bind_ms': bind_ms,
            }
            for uuid, fault in failed.items()
        ],
    )


def asks(
    rows: Mapping[str, RowToBind], bindings: Bindings
) -> dict[str, list[handle_stock.Ask]]:
    """Instance uuid -> what its ARQs ask for, one ask for each group.

    :param rows: of :func:`lock`
    """
    found: dict[str, list[handle_stock.Ask]] = {}
    for instance_uuid, uuids in by_instance(bindings).items():
        parts: dict[tuple[int, str, str], list[str]] = {}
        for uuid in uuids:
            parts.setdefault(
                (
                    rows[uuid]['device_profile_group_id'],
                    bindings[uuid]['hostname'],
                    bindings[uuid]['device_rp_uuid'],
                ),
                [],
            ).append(uuid)
        found[instance_uuid] = [
            handle_stock.Ask(
                hostname,
                rp_uuid,
                device_profile.parse_group(rows[of_group[0]]['group']),
                {uuid: rows[uuid]['resource_class'] for uuid in of_group},
            )
            for (_index, hostname, rp_uuid), of_group in parts.items()
        ]
    return found


def by_instance(
    bindings: Bindings,
) -> dict[str, list[str]]:
    """Instance uuid -> the uuids of the ARQs that it is to get."""
    result: dict[str, list[str]] = {}
    for uuid, binding in bindings.items():
        result.setdefault(binding['instance_uuid'], []).append(uuid)
    return result


def _check_bindable(rows: Mapping[str, RowToBind]) -> None:
    for row in rows.values():
        if row['earlier'] is not None:
            raise exceptions.InvalidRequest(
                f'Instance {row["earlier"]} already has accelerator '
                'requests. Cannot bind additional ARQs.'
            )
    for uuid, row in rows.items():
        arq_types.check_transition(
            uuid, arq_types.State(row['state']), arq_types.State.BOUND
        )


def _places(
    rows: Mapping[str, RowToBind],
    bindings: Bindings,
) -> dict[str, dict[str, Any]]:
    """ARQ uuid -> the columns that bind it; its reason is cleared."""
    return {
        uuid: {
            'uuid': uuid,
            'position': position,
            'reason': None,
            'chosen_because': None,
            'project_id': bindings[uuid].get(
                'project_id', rows[uuid]['project_id']
            ),
            **{name: bindings[uuid][name] for name in PLACE},
        }
        for of_one in by_instance(bindings).values()
        for position, uuid in enumerate(of_one)
    }


def _place(
    connection: sa.Connection,
    state: arq_types.State,
    places: Sequence[Mapping[str, Any]],
) -> None:
    """Bind ARQs, or write that this failed.

    :param places: of :func:`_places`, with the reason if it failed
    """
    if not places:
        return
    # It fails if another binding of the instance came first.
    with engine.raced(
        exceptions.Conflict.for_all(
            'The instances are being bound at the same time.'
        )
    ):
        connection.execute(
            _placing(state, len(places)),
            {'changed_at': schema.now(), **per_row.parameters(places)},
        )


@functools.lru_cache
def _placing(state: arq_types.State, amount: int) -> sa.Update:
    columns = [
        _TABLE.c[name]
        for name in (
            *PLACE,
            'position',
            'project_id',
            'reason',
            'chosen_because',
            'bind_ms',
        )
    ]
    return (
        sa.update(_TABLE)
        .where(
            per_row.is_one(_TABLE.c.uuid, amount),
            _TABLE.c.state.in_(list(arq_types.sources(state))),
        )
        .values(
            state=state,
            updated_at=sa.bindparam('changed_at'),
            **per_row.values(_TABLE.c.uuid, columns, amount),
        )
    )
