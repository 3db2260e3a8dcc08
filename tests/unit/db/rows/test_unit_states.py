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

import dataclasses
import itertools

import hypothesis
from hypothesis import strategies as st
import sqlalchemy as sa
import testtools

from nova_accel.db.rows import unit_states
from nova_accel.db.sql import schema
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.units import unit_state
from unit.model.cards import slices

State = unit_state.UnitState

_HANDLES = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES

#: All combinations of what is stored of a device, and of a unit.
_OF_DEVICES = [*itertools.product(hardware.Status, (None, '', 'hot'))]
_OF_UNITS = [
    *itertools.product(
        (True, False),
        (None, 0, 7),
        (None, '', 'stuck'),
        'ab',
        # What is taken of its card beside it, if it shares one.
        (None, slices.eighths('mig:3g.40gb', 4, 4), slices.WHOLE),
    )
]

_QUARTER = slices.eighths('mig:1g.20gb', 2, 2)


def _on_card(card_uuid: str, unit: card_slice.CardSlice) -> dict[str, object]:
    return {
        'card_uuid': card_uuid,
        'slice_mode': unit.mode,
        'slice_start': unit.start,
        'slice_end': unit.end,
    }


class RowsTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        engine = sa.create_engine('sqlite://')
        self.addCleanup(engine.dispose)
        self.connection = engine.connect()
        self.addCleanup(self.connection.close)
        for table in (_DEVICES, _DEPLOYABLES, _HANDLES):
            self.connection.execute(
                sa.schema.CreateTable(_without_rules(table))
            )

    def add(self, table: sa.Table, **values: object) -> None:
        self.connection.execute(sa.insert(table).values(values))


class TestUnitStates(RowsTestCase):
    """SQL and Python judge each unit in the same way."""

    def setUp(self) -> None:
        super().setUp()
        numbers = itertools.count()
        for number, (status, fault) in enumerate(_OF_DEVICES):
            name = f'device {number}'
            self.add(_DEVICES, uuid=name, status=status, fault=fault)
            self.add(_DEPLOYABLES, uuid=name, device_uuid=name)
            for present, since, reason, holder, beside in _OF_UNITS:
                card = f'card {next(numbers)}'
                self.add(
                    _HANDLES,
                    uuid=card,
                    deployable_uuid=name,
                    present=present,
                    unclean_since=since,
                    unclean_reason=reason,
                    arq_uuid=None if holder == 'a' else holder,
                    **({} if beside is None else _on_card(card, _QUARTER)),
                )
                if beside is not None:
                    self.add(
                        _HANDLES,
                        uuid=f'beside {card}',
                        arq_uuid='arq',
                        **_on_card(card, beside),
                    )

    def read(
        self, asked: sa.ColumnElement[object]
    ) -> list[tuple[unit_state.Condition, object]]:
        """Each unit's condition, and the answer of SQL."""
        rows = self.connection.execute(
            sa.select(
                asked,
                *unit_states.CONDITION,
                _HANDLES.c.arq_uuid.is_not(None),
            ).select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
        ).all()
        self.assertEqual(len(_OF_DEVICES) * len(_OF_UNITS), len(rows))
        return [
            (unit_state.Condition(*condition), answer)
            for answer, *condition in rows
        ]

    def test_state(self) -> None:
        found = set()
        for is_silent in (False, True):
            asked = unit_states.state(sa.literal(is_silent))
            for condition, answer in self.read(asked):
                unit = dataclasses.replace(condition, is_silent=is_silent)
                self.assertEqual(unit.state(), answer, unit)
                found.add(answer)
        self.assertEqual({*State}, found)

    def test_each_state_alone(self) -> None:
        for state in {*State} - {State.HOST_SILENT, State.FREE}:
            for condition, answer in self.read(unit_states.is_in(state)):
                self.assertEqual(
                    condition.state([state]) is state, answer, condition
                )

    def test_free(self) -> None:
        for condition, answer in self.read(unit_states.is_free()):
            self.assertEqual(
                condition.state() is State.FREE, answer, condition
            )

    def test_the_parts_of_a_free_unit(self) -> None:
        of_its_own = [
            state for state in State if state not in unit_states.OF_DEVICE
        ]
        alone = [state for state in of_its_own if state is not State.EXCLUDED]
        for asked, among in (
            (unit_states.is_available(), of_its_own),
            (unit_states.is_unused(), alone),
            (unit_states.is_usable(), unit_states.OF_DEVICE),
        ):
            for condition, answer in self.read(asked):
                self.assertEqual(
                    condition.state(among) is State.FREE, answer, condition
                )


#: Of each unit of two cards: its card, its slice, and whether it is taken.
UNITS = st.lists(
    st.tuples(
        st.sampled_from(['card', 'other']),
        slices.ANY | st.just(slices.WHOLE),
        st.booleans(),
    ),
    max_size=8,
)


class TestRoom(RowsTestCase):
    @hypothesis.given(UNITS)
    # Two halves, of which either one is taken.
    @hypothesis.example(
        [
            ('card', slices.eighths('mig:3g.40gb', start, 4), is_taken)
            for start, is_taken in ((0, False), (4, True))
        ]
    )
    @hypothesis.example(
        [
            ('card', slices.eighths('mig:3g.40gb', start, 4), is_taken)
            for start, is_taken in ((0, True), (4, False))
        ]
    )
    def test_a_card_has_room_in_sql_as_in_python(
        self, units: list[tuple[str, card_slice.CardSlice, bool]]
    ) -> None:
        self.connection.execute(sa.delete(_HANDLES))
        self.add(_HANDLES, uuid='of no card', arq_uuid='arq')
        for number, (card, unit, is_taken) in enumerate(units):
            self.add(
                _HANDLES,
                uuid=str(number),
                present=True,
                arq_uuid='arq' if is_taken else None,
                **_on_card(card, unit),
            )
        is_excluded = unit_states.is_in(State.EXCLUDED)
        self.assertEqual(
            {'of no card': False}
            | {
                str(number): any(
                    is_taken and card == other and unit.excludes(each)
                    for place, (other, each, is_taken) in enumerate(units)
                    if place != number
                )
                for number, (card, unit, _is_taken) in enumerate(units)
            },
            {
                row.uuid: bool(row.answer)
                for row in self.connection.execute(
                    sa.select(_HANDLES.c.uuid, is_excluded.label('answer'))
                )
            },
        )


def _without_rules(table: sa.Table) -> sa.Table:
    """The table without what the rows of this test do not have."""
    return sa.Table(
        table.name,
        sa.MetaData(),
        *(sa.Column(each.name, each.type) for each in table.columns),
    )
