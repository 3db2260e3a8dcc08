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

"""The units of all hosts, and which of them have changed since.

``attach_handles.changed_at`` and ``hosts.changed_at`` are times of the
database's clock, set by the statement that makes the change. A change is seen
only when its transaction has ended. So each reading goes back by the time that
a transaction may last: a change that comes late is read then, and others are
read again.
"""

import datetime
import functools
import json
from typing import Any

import sqlalchemy as sa

from nova_accel import conf
from nova_accel.db.rows import host_rows
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.db.sql import utc_datetime
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.units import unit_changes
from nova_accel.model.units import unit_state

CONF = conf.CONF

_HOSTS = schema.HOSTS
_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_State = unit_state.UnitState

#: A step of the database's clock by no more than so many seconds loses no
#: change.
STEP_S = 30

#: The least time in seconds that a transaction is expected to last. A server
#: that was frozen may end one when its client has given up long ago.
_LASTS_S = 60

# The kinds of rows.
_OF_HOST, _OTHER, _SILENT, _UNPUBLISHED, _CLOCK = range(5)

_TOTAL = sa.func.count(sa.case((_HANDLES.c.present, 1)))
_FREE = sa.func.count(sa.case((unit_states.is_available(), 1)))
_IN_USE = sa.func.count(
    sa.case((sa.and_(_HANDLES.c.present, unit_states.is_in(_State.USED)), 1))
)
#: The slices of a deployable of a card of many shapes: their mode and size,
#: and the starts of those that its host offers, and of those that are taken.
_SLICES = (
    sa.func.max(_HANDLES.c.slice_mode),
    sa.func.max(_HANDLES.c.slice_end - _HANDLES.c.slice_start),
    *(
        sa.func.aggregate_strings(
            sa.case((which, sa.cast(_HANDLES.c.slice_start, sa.String(10)))),
            ',',
        )
        for which in (
            sa.and_(_HANDLES.c.present, _HANDLES.c.unclean_since.is_(None)),
            _HANDLES.c.arq_uuid.is_not(None),
        )
    ),
)

#: Why no guest can have a unit of the device, in the words for tenants.
_UNUSABLE = sa.case(
    *(
        (unit_states.is_in(state), unit_state.MEANINGS[state].public)
        for state in unit_states.OF_DEVICE
    )
)


def _rows(
    kind: int,
    source: sa.FromClause,
    hostname: sa.Column[str],
    total: sa.ColumnElement[Any],
    free: sa.ColumnElement[Any],
    in_use: sa.ColumnElement[Any],
    *slices: sa.ColumnElement[Any],
) -> sa.Select[Any]:
    """The columns of a :class:`unit_changes.ChangedDeployable`."""
    return sa.select(
        sa.literal_column(str(kind)).label('kind'),
        hostname,
        _DEPLOYABLES.c.uuid,
        _DEPLOYABLES.c.rp_uuid,
        _DEPLOYABLES.c.resource_class,
        # As a text, since few of them differ.
        sa.type_coerce(_DEPLOYABLES.c.traits, sa.Text).label('traits'),
        _DEPLOYABLES.c.device_uuid,
        _DEVICES.c.numa_node,
        _DEPLOYABLES.c.region,
        _DEPLOYABLES.c.bitstream_id,
        sa.func.coalesce(total, 0).label('total'),
        sa.case(
            (unit_states.is_usable(), sa.func.coalesce(free, 0)), else_=0
        ).label('free'),
        sa.func.coalesce(in_use, 0).label('in_use'),
        _UNUSABLE.label('unusable'),
        *slices,
        # As a text, too.
        sa.type_coerce(_DEVICES.c.link_sets, sa.Text).label('link_sets'),
    ).select_from(source)


def _count(what: sa.ColumnElement[int]) -> sa.ScalarSelect[int]:
    """A count of the handles of the deployable."""
    return (
        sa.select(what)
        .where(_HANDLES.c.deployable_uuid == _DEPLOYABLES.c.uuid)
        .scalar_subquery()
    )


def _short(kind: int, text: sa.ColumnElement[str]) -> sa.Select[Any]:
    """A row that has only one value."""
    return sa.select(
        sa.literal_column(str(kind)), text, *[sa.null() for _ in range(17)]
    )


#: All hosts, also those that have no devices.
_OF_HOSTS = _HOSTS.outerjoin(
    _DEVICES, _DEVICES.c.hostname == _HOSTS.c.hostname
).outerjoin(_DEPLOYABLES, _DEPLOYABLES.c.device_uuid == _DEVICES.c.uuid)

_REST = (
    _short(_SILENT, _HOSTS.c.hostname).where(
        _HOSTS.c.reported_at
        < clock.ago(sa.bindparam('silence_s', type_=sa.Integer))
    ),
    _short(_UNPUBLISHED, _HOSTS.c.hostname).where(host_rows.IS_UNPUBLISHED),
    _short(_CLOCK, sa.cast(clock.now(), sa.String(32))),
)

_SINCE = sa.bindparam('since', type_=utc_datetime.UtcDateTime)


def _all() -> sa.CompoundSelect[Any]:
    counted = (
        sa.select(
            _HANDLES.c.deployable_uuid,
            _TOTAL.label('total'),
            _FREE.label('free'),
            _IN_USE.label('in_use'),
            *(
                each.label(f'slice{number}')
                for number, each in enumerate(_SLICES)
            ),
        )
        .group_by(_HANDLES.c.deployable_uuid)
        .subquery('counted')
    )
    return sa.union_all(
        _rows(
            _OF_HOST,
            _OF_HOSTS.outerjoin(
                counted, counted.c.deployable_uuid == _DEPLOYABLES.c.uuid
            ),
            _HOSTS.c.hostname,
            counted.c.total,
            counted.c.free,
            counted.c.in_use,
            *(counted.c[f'slice{number}'] for number in range(len(_SLICES))),
        ),
        *_REST,
    )


def _changed() -> sa.CompoundSelect[Any]:
    is_new = _HANDLES.c.changed_at >= _SINCE
    # A unit that is taken or given back changes the room for all others of its
    # card.
    others = _HANDLES.alias('others_of_card')
    changed = sa.union(
        sa.select(_HANDLES.c.deployable_uuid).where(is_new),
        sa.select(others.c.deployable_uuid)
        .select_from(
            _HANDLES.join(others, others.c.card_uuid == _HANDLES.c.card_uuid)
        )
        .where(is_new),
    )
    counts = [_count(each) for each in (_TOTAL, _FREE, _IN_USE, *_SLICES)]
    return sa.union_all(
        _rows(_OF_HOST, _OF_HOSTS, _HOSTS.c.hostname, *counts).where(
            _HOSTS.c.changed_at >= _SINCE
        ),
        _rows(
            _OTHER,
            _DEPLOYABLES.join(_DEVICES),
            _DEVICES.c.hostname,
            *counts,
        ).where(_DEPLOYABLES.c.uuid.in_(changed)),
        *_REST,
    )


_ALL = _all()
_CHANGED = _changed()


@engine.retried
def read(since: datetime.datetime | None) -> unit_changes.Changes:
    """Read the changes and the silent hosts, by one statement.

    :param since: the time at which the database was read before, by its own
        clock; None to read everything
    """
    parameters: dict[str, Any] = {'silence_s': CONF.nova_accel.host_silence_s}
    if since is not None:
        parameters['since'] = since - _overlap()
    with engine.reader() as connection:
        rows = connection.execute(
            _ALL if since is None else _CHANGED, parameters
        ).all()
    return _parsed(rows, is_all=since is None)


def _overlap() -> datetime.timedelta:
    """How far a reading goes back before the one before."""
    options = CONF.nova_accel_database
    lasts_s = options.deadline_s + 2 * options.answer_timeout_s
    return datetime.timedelta(seconds=max(_LASTS_S, lasts_s) + STEP_S)


def _parsed(rows: Any, is_all: bool) -> unit_changes.Changes:
    of_hosts: dict[str, list[unit_changes.ChangedDeployable]] = {}
    others: list[unit_changes.ChangedDeployable] = []
    silent, unpublished = set(), set()
    at = ''
    for (
        kind,
        text,
        uuid,
        provider,
        class_,
        traits,
        *facts,
        mode,
        size,
        offered,
        taken,
        sets,
    ) in rows:
        if kind == _SILENT:
            silent.add(text)
        elif kind == _UNPUBLISHED:
            unpublished.add(text)
        elif kind == _CLOCK:
            at = text
        else:
            deployables = (
                others if kind == _OTHER else of_hosts.setdefault(text, [])
            )
            if uuid is not None:
                deployables.append(
                    unit_changes.ChangedDeployable._make(
                        (
                            text,
                            uuid,
                            provider,
                            class_,
                            _traits(traits),
                            *facts,
                            _slices(class_, mode, size, offered),
                            _slices(class_, mode, size, taken),
                            _link_sets(sets),
                        )
                    )
                )
    return unit_changes.Changes(
        datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.UTC),
        is_all,
        of_hosts,
        others,
        frozenset(silent),
        frozenset(unpublished),
    )


@functools.lru_cache(maxsize=4096)
def _slices(
    resource_class: str, mode: str | None, size: int, starts: str | None
) -> tuple[card_slice.CardSlice, ...]:
    """Slices, of which only this process knows, so the class is the shape."""
    if mode is None or not starts:
        return ()
    return tuple(
        card_slice.CardSlice(resource_class, mode, start, size)
        for start in sorted(map(int, starts.split(',')))
    )


@functools.lru_cache(maxsize=4096)
def _traits(text: str) -> frozenset[str]:
    """The traits of a provider, of which hosts do not report those of all."""
    return frozenset(
        {*json.loads(text), naming.OWNERSHIP_TRAIT, naming.OWNER_TRAIT}
    )


@functools.lru_cache(maxsize=4096)
def _link_sets(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
