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

"""Cards of many shapes, of which only units are given that fit together."""

import functools
import itertools
import random

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import fleet
from nova_accel.db import free_units
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import unit_state
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

WHOLE, HALF, EIGHTH = reports.WHOLE, reports.HALF, reports.EIGHTH


class CardTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(), cards=2)
        self.host.report()
        self.profiles: set[str] = set()

    def acquire(
        self, *shapes: str, card: int = 0
    ) -> list[card_slice.CardSlice]:
        """The slices that an instance gets, in the order of the shapes."""
        found = host_arqs.acquire(self.request_shapes(*shapes, card=card))
        return [
            card_slice.from_dict(row['attach_handle_info']['slice'])
            for row in sorted(
                found, key=lambda row: row['device_profile_group_id']
            )
        ]

    def request_shapes(
        self, *shapes: str, card: int = 0
    ) -> host_arqs.AcquireRequest:
        name = naming.shape_class('_'.join(shapes))
        if name not in self.profiles:
            self.make_profile(
                *device_profile.checked_groups(
                    [{'accel:shape': shape} for shape in shapes]
                ),
                name=name,
            )
            self.profiles.add(name)
        return self.request(
            self.host.allocated_shapes(*shapes, card=card),
            device_profile_name=name,
        )

    def taken_slices(self) -> list[tuple[str, card_slice.CardSlice]]:
        """The device and the slice of each unit that is taken."""
        return [
            (row['card_uuid'], card_slice.from_dict(row['info']['slice']))
            for row in self.rows(schema.ATTACH_HANDLES)
            if row['arq_uuid'] is not None
        ]


class TestOneAfterTheOther(CardTestCase):
    scenarios = database.SCENARIOS

    def test_only_what_fits_is_given(self) -> None:
        [first] = self.acquire(EIGHTH)
        with self.assertRaisesRegex(
            exceptions.AcceleratorsBusy,
            'other units of its card leave no room for it',
        ):
            self.acquire(WHOLE)
        [half] = self.acquire(HALF)
        self.assertFalse(half.excludes(first))
        with self.assertRaises(exceptions.AcceleratorsBusy):
            self.acquire(HALF)
        [whole] = self.acquire(WHOLE, card=1)
        self.assertEqual(card_slice.WHOLE_CARD, whole.size)

    def test_the_start_does_the_least_harm(self) -> None:
        """Small units fill one half before they break the other one."""
        for _number in range(3):
            self.acquire(EIGHTH)
        self.acquire(HALF)

    def test_two_shapes_of_one_server(self) -> None:
        slices = self.acquire(EIGHTH, HALF, EIGHTH)
        for one, other in itertools.combinations(slices, 2):
            self.assertFalse(one.excludes(other))
        with self.assertRaisesRegex(
            exceptions.AcceleratorsBusy, 'beside the other units'
        ):
            self.acquire(WHOLE, EIGHTH, card=1)
        self.assertEqual(3, len(self.taken_slices()))

    def test_several_servers_at_once(self) -> None:
        """Even if there are too few units for all of them."""
        arqs = []
        for shape in (HALF, WHOLE, WHOLE):
            self.request_shapes(shape)
            arqs += client_arqs.create(naming.shape_class(shape), base.PROJECT)
        client_arqs.bind(
            {arq['uuid']: self.place(self.host.card()) for arq in arqs}
        )
        [(_card, only)] = self.taken_slices()
        self.assertEqual(HALF, only.shape)

    def test_units_that_no_one_may_have(self) -> None:
        """The best one is still to be cleaned."""
        [first] = self.acquire(EIGHTH)
        [second] = self.acquire(EIGHTH, card=1)
        self.assertEqual(first, second)
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(
                    arq_uuid=None,
                    unclean_since=sa.case(
                        (schema.ATTACH_HANDLES.c.arq_uuid.is_not(None), 1)
                    ),
                )
            )
        [other] = self.acquire(EIGHTH)
        self.assertNotEqual(first, other)

    def test_a_card_is_free_again(self) -> None:
        request = self.request_shapes(HALF)
        host_arqs.acquire(request)
        host_arqs.release(*request.key, request.attempt)
        self.acquire(WHOLE)


class TestReading(CardTestCase):
    scenarios = database.SCENARIOS

    def free(self) -> dict[str, int]:
        """Shape -> free units of the first card."""
        return {
            each.resource_class: each.free
            for each in self.known.values()
            if each.rp_uuid == self.host.card()
        }

    def read(self) -> None:
        changes = free_units.read(self.since)
        self.since = changes.at
        for each in itertools.chain(
            *changes.of_hosts.values(), changes.others
        ):
            self.known[each.uuid] = each

    def test_a_unit_that_is_taken_changes_all_of_its_card(self) -> None:
        self.since, self.known = None, {}
        self.read()
        classes = [
            f'CUSTOM_SHAPE_{name}'
            for name in ('WHOLE', 'MIG_3G_40GB', 'MIG_1G_10GB')
        ]
        self.assertEqual([1, 2, 7], [self.free()[name] for name in classes])
        request = self.request_shapes(EIGHTH)
        host_arqs.acquire(request)
        self.known = {}
        self.read()
        self.assertEqual([0, 1, 6], [self.free()[name] for name in classes])
        host_arqs.release(*request.key, request.attempt)
        self.known = {}
        self.read()
        self.assertEqual([1, 2, 7], [self.free()[name] for name in classes])

    def test_the_largest_share(self) -> None:
        self.since, self.known = None, {}
        self.read()
        self.assertEqual(
            {card_slice.WHOLE_CARD // each for each in (1, 2, 8)},
            {each.share for each in self.known.values()},
        )

    def test_the_fleet_knows_what_is_excluded(self) -> None:
        self.acquire(HALF)
        units = fleet.read(3600).units
        states = [
            (unit.resource_class, unit.condition.state())
            for unit in units
            if unit.rp_uuid == self.host.card() and unit.arq is None
        ]
        excluded = unit_state.UnitState.EXCLUDED
        self.assertIn(('CUSTOM_SHAPE_WHOLE', excluded), states)
        self.assertEqual(4, sum(state is excluded for _class, state in states))


class TestRaces(CardTestCase):
    scenarios = database.SCENARIOS

    def test_units_that_exclude_each_other(self) -> None:
        shapes = [WHOLE, HALF, EIGHTH] * (base.RACERS // 3 + 1)
        for number in range(3):
            requests = [
                self.request_shapes(shape)
                for shape in random.Random(number).sample(shapes, base.RACERS)
            ]
            results = base.race(
                [
                    functools.partial(host_arqs.acquire, request)
                    for request in requests
                ]
            )
            self.assertTrue(any(isinstance(each, list) for each in results))
            self.assertEqual(
                {list, exceptions.AcceleratorsBusy} | set(map(type, results)),
                {list, exceptions.AcceleratorsBusy},
            )
            for one, other in itertools.combinations(self.taken_slices(), 2):
                self.assertFalse(one[1].excludes(other[1]), (one, other))
            for request in requests:
                host_arqs.release(*request.key, request.attempt)
