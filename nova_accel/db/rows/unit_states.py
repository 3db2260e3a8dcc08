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

"""The states of units in SQL, made of the table of the model.

All is for queries that have attach handles, with their devices.
"""

from typing import Any

import sqlalchemy as sa

from nova_accel.db.sql import schema
from nova_accel.model.units import unit_health
from nova_accel.model.units import unit_state

_HANDLES = schema.ATTACH_HANDLES
_DEVICES = schema.DEVICES

_State = unit_state.UnitState

_OTHERS = schema.ATTACH_HANDLES.alias('others')

# The rule of ``CardSlice.excludes`` (``model/cards/card_slice.py``). A handle
# that shares no card costs no look at others.
_HAS_ROOM = sa.or_(
    _HANDLES.c.card_uuid.is_(None),
    ~sa.exists()
    .where(
        _OTHERS.c.card_uuid == _HANDLES.c.card_uuid,
        _OTHERS.c.uuid != _HANDLES.c.uuid,
        _OTHERS.c.arq_uuid.is_not(None),
        sa.or_(
            _OTHERS.c.slice_mode != _HANDLES.c.slice_mode,
            sa.and_(
                _OTHERS.c.slice_start < _HANDLES.c.slice_end,
                _HANDLES.c.slice_start < _OTHERS.c.slice_end,
            ),
        ),
    )
    .correlate(_HANDLES),
)

_COLUMNS: dict[str, sa.ColumnElement[Any]] = {
    'is_present': _HANDLES.c.present,
    'status': _DEVICES.c.status,
    'fault': _DEVICES.c.fault,
    'is_clean': _HANDLES.c.unclean_since.is_(None),
    'unclean_reason': _HANDLES.c.unclean_reason,
    'has_room': _HAS_ROOM,
    'is_held': _HANDLES.c.arq_uuid.is_not(None),
}

#: The first fields of :class:`nova_accel.model.units.unit_state.Condition`, by
#: which a unit that no one has is judged.
CONDITION = tuple(_COLUMNS.values())[:-1]

#: The states by which no guest can have any unit of a device.
OF_DEVICE = (_State.DISABLED, _State.FAULTY)

#: The states of the attach handle itself. One of which the cleaning has
#: failed is still to be cleaned.
_OF_HANDLE = (_State.USED, _State.BEING_CLEANED, _State.GONE)


def is_in(state: unit_state.UnitState) -> sa.ColumnElement[bool]:
    """Whether a unit is in a stored state, among others."""
    return sa.and_(
        *(sa.not_(_is_good(field)) for field in unit_state.MEANINGS[state].bad)
    )


def is_free() -> sa.ColumnElement[bool]:
    """Whether a guest can have it, if its host reports."""
    return sa.and_(is_available(), is_usable())


def is_available() -> sa.ColumnElement[bool]:
    """The part of :func:`is_free` that depends on no device."""
    return sa.and_(is_unused(), has_room())


def has_room() -> sa.ColumnElement[bool]:
    """Whether no other unit of its card excludes it."""
    return _HAS_ROOM


def is_unused() -> sa.ColumnElement[bool]:
    """The part of :func:`is_free` that depends on the attach handle alone."""
    return sa.and_(*(sa.not_(is_in(state)) for state in _OF_HANDLE))


def is_usable() -> sa.ColumnElement[bool]:
    """The part of :func:`is_free` that depends on the device."""
    return sa.and_(*(sa.not_(is_in(state)) for state in OF_DEVICE))


def has_failed() -> sa.ColumnElement[bool]:
    """Whether it is of no use to the guest that has it."""
    return sa.or_(
        *(
            is_in(state)
            for state, verdict in unit_health.VERDICTS.items()
            if verdict.health is unit_health.Health.FAILED
        )
    )


def state(is_silent: sa.ColumnElement[bool]) -> sa.ColumnElement[str]:
    """The state of a unit.

    :param is_silent: whether its host does not report
    """
    return sa.case(
        *(
            (
                is_silent if state is _State.HOST_SILENT else is_in(state),
                state.value,
            )
            for state in _State
            if state is not _State.FREE
        ),
        else_=_State.FREE.value,
    )


def _is_good(field: str) -> sa.ColumnElement[bool]:
    column = _COLUMNS[field]
    good = getattr(unit_state.GOOD, field)
    if good is None:
        return column.is_(None)
    if isinstance(good, bool):
        return column if good else sa.not_(column)
    return column == good
