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

"""The numbers of the whole fleet, for a monitoring system.

All is read in one transaction, by a number of statements that depends on
nothing. None of them waits for a lock.
"""

import datetime
from typing import Any

import sqlalchemy as sa

from nova_accel.db.rows import host_rows
from nova_accel.db.rows import period_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model.fleet import fleet_numbers
from nova_accel.model.units import unit_state

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES
_ARQS = schema.ARQS
_PROGRAMMINGS = schema.PROGRAMMINGS
_FINDINGS = schema.FINDINGS

_HOLDING = (arq_types.State.BOUND, arq_types.State.PROVISIONING)

_OF_BOUND = (
    sa.select(
        _ARQS.c.uuid,
        _ARQS.c.instance_uuid,
        _ARQS.c.project_id,
        _ARQS.c.hostname,
        _ARQS.c.role,
        _ARQS.c.resource_class,
        _DEVICES.c.uuid,
        _DEVICES.c.address,
        _DEVICES.c.product,
    )
    .select_from(period_rows.HELD)
    .order_by(_ARQS.c.id)
)

_KIND = (
    _ARQS.c.project_id,
    period_rows.PRODUCT,
    _ARQS.c.resource_class,
    period_rows.SHAPE.label('shape'),
)

_OF_HELD = (
    sa.select(*_KIND, sa.func.count())
    .select_from(period_rows.HELD)
    .group_by(*_KIND)
    .order_by(*_KIND)
)

_OF_DEVICES = sa.select(
    sa.func.count(), sa.func.count(_DEVICES.c.fault)
).select_from(_DEVICES)

_OF_STATES = sa.select(_ARQS.c.state, sa.func.count()).group_by(_ARQS.c.state)

_OF_FINDINGS = sa.select(
    _FINDINGS.c.kind, _FINDINGS.c.is_repaired, sa.func.count()
).group_by(_FINDINGS.c.kind, _FINDINGS.c.is_repaired)

_OF_BIND_FAILURES = (
    sa.select(_ARQS.c.reason)
    .where(_ARQS.c.state == arq_types.State.BIND_FAILED)
    .order_by(_ARQS.c.id.desc())
    .limit(fleet_numbers.RECENT)
)


@engine.retried
def read(
    silence_s: int, window_s: int, most_bound: int
) -> fleet_numbers.Numbers:
    """Read all numbers.

    :param silence_s: seconds without a report after which a host is silent
    :param window_s: how far back bindings and programmings are looked at
    :param most_bound: how many of the ARQs that have a unit are given
    """
    since = schema.now() - datetime.timedelta(seconds=window_s)
    with engine.reader() as connection:
        hosts = connection.execute(_of_hosts(silence_s)).all()
        units = connection.execute(_of_units(silence_s)).tuples().all()
        [(devices, faulty)] = connection.execute(_OF_DEVICES).tuples()
        states = connection.execute(_OF_STATES).tuples().all()
        bound = connection.execute(_OF_BOUND.limit(most_bound)).all()
        held = connection.execute(_OF_HELD).all()
        bind_failures = connection.scalars(_OF_BIND_FAILURES).all()
        bind_ms = connection.scalars(_of_recent_bindings(since)).all()
        programmings = (
            connection.execute(_of_recent_programmings(since)).tuples().all()
        )
        findings = connection.execute(_OF_FINDINGS).tuples().all()
    ended = [row for row in programmings if row[1] is not None]
    return fleet_numbers.Numbers(
        hosts=[fleet_numbers.HostNumbers(*row) for row in hosts],
        units={
            (resource_class, unit_state.UnitState(state)): amount
            for resource_class, state, amount in units
        },
        devices=devices,
        faulty_devices=faulty,
        arqs=dict(states),
        bound=[fleet_numbers.BoundArq(*row) for row in bound],
        held=[fleet_numbers.HeldUnits(*row) for row in held],
        bind_failures=bind_failures,
        bind_s=[milliseconds / 1000 for milliseconds in bind_ms],
        programming_s=[
            seconds
            for began, finished, failure in ended
            if failure is None
            and (seconds := fleet_numbers.duration_s(began, finished))
            is not None
        ],
        programmings_running=len(programmings) - len(ended),
        programming_failures=[
            failure
            for _began, _finished, failure in ended
            if failure is not None
        ],
        findings={
            (kind, is_repaired): amount
            for kind, is_repaired, amount in findings
        },
    )


def _of_hosts(silence_s: int) -> sa.Select[Any]:
    return sa.select(
        _HOSTS.c.hostname,
        _HOSTS.c.reported_at,
        host_rows.is_silent(silence_s).label('is_silent'),
    ).order_by(_HOSTS.c.hostname)


def _of_units(silence_s: int) -> sa.Select[Any]:
    """The number of units of each resource class in each state."""
    state = unit_states.state(host_rows.is_silent(silence_s))
    each = (
        sa.select(_DEPLOYABLES.c.resource_class, state.label('state'))
        .select_from(
            _HANDLES.join(_DEPLOYABLES).join(_DEVICES).outerjoin(_HOSTS)
        )
        .subquery('each_unit')
    )
    return sa.select(
        each.c.resource_class, each.c.state, sa.func.count()
    ).group_by(each.c.resource_class, each.c.state)


def _of_recent_bindings(since: datetime.datetime) -> sa.Select[Any]:
    newest = (
        sa.select(_ARQS.c.state, _ARQS.c.created_at, _ARQS.c.bind_ms)
        .order_by(_ARQS.c.id.desc())
        .limit(fleet_numbers.RECENT)
        .subquery('newest')
    )
    return sa.select(newest.c.bind_ms).where(
        newest.c.state.in_(_HOLDING),
        newest.c.created_at >= since,
        newest.c.bind_ms.is_not(None),
    )


def _of_recent_programmings(since: datetime.datetime) -> sa.Select[Any]:
    return (
        sa.select(
            _PROGRAMMINGS.c.started_at,
            _PROGRAMMINGS.c.finished_at,
            _PROGRAMMINGS.c.failure,
        )
        .where(_PROGRAMMINGS.c.started_at >= since)
        .order_by(_PROGRAMMINGS.c.started_at.desc(), _PROGRAMMINGS.c.id.desc())
        .limit(fleet_numbers.RECENT)
    )
