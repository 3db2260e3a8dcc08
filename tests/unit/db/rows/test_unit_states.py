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

import sqlalchemy as sa
import testtools

from nova_accel.db.rows import unit_states
from nova_accel.db.sql import schema
from nova_accel.model.devices import hardware
from nova_accel.model.units import unit_state

State = unit_state.UnitState

_HANDLES = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES
_DEVICES = schema.DEVICES

#: All combinations of what is stored of a device, and of a unit.
_OF_DEVICES = [*itertools.product(hardware.Status, (None, '', 'hot'))]
_OF_UNITS = [
    *itertools.product((True, False), (None, 0, 7), (None, '', 'stuck'), 'ab')
]


class TestUnitStates(testtools.TestCase):
    """SQL and Python judge each unit in the same way."""

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
        for number, (status, fault) in enumerate(_OF_DEVICES):
            name = f'device {number}'
            self.add(_DEVICES, uuid=name, status=status, fault=fault)
            self.add(_DEPLOYABLES, uuid=name, device_uuid=name)
            for present, since, reason, holder in _OF_UNITS:
                self.add(
                    _HANDLES,
                    deployable_uuid=name,
                    present=present,
                    unclean_since=since,
                    unclean_reason=reason,
                    arq_uuid=None if holder == 'a' else holder,
                )

    def add(self, table: sa.Table, **values: object) -> None:
        self.connection.execute(sa.insert(table).values(values))

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
        for asked, among in (
            (unit_states.is_unused(), of_its_own),
            (unit_states.is_usable(), unit_states.OF_DEVICE),
        ):
            for condition, answer in self.read(asked):
                self.assertEqual(
                    condition.state(among) is State.FREE, answer, condition
                )


def _without_rules(table: sa.Table) -> sa.Table:
    """The table without what the rows of this test do not have."""
    return sa.Table(
        table.name,
        sa.MetaData(),
        *(sa.Column(each.name, each.type) for each in table.columns),
    )
