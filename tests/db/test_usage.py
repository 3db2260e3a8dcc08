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

import collections
from collections.abc import Callable
import datetime
import random
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db import usage
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

_TABLE = schema.HELD_PERIODS

#: The first step of a history; all of it is over.
_BASE = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

_PROJECTS = ('a' * 32, 'b' * 32, 'c' * 32)

#: Project, product, resource class and shape.
_Key = tuple[str, str, str, str]


def _at(seconds: int) -> datetime.datetime:
    return _BASE + datetime.timedelta(seconds=seconds)


class UsageTestCase(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1), functions=4, cards=2)
        self.host.report()
        self.make_profile()
        self.make_profile({'resources:CUSTOM_QAT': '2'}, name='qat')
        self.make_profile(
            *device_profile.checked_groups([{'accel:shape': reports.EIGHTH}]),
            name='eighth',
        )

    def set_times(self, seconds: int) -> None:
        """What has just begun or ended did so then."""
        with self.database.engine.begin() as connection:
            for column in (_TABLE.c.began_at, _TABLE.c.ended_at):
                connection.execute(
                    sa.update(_TABLE)
                    .where(column > _at(10**6))
                    .values({column: _at(seconds)})
                )

    def seconds(
        self, start: int, end: int, project_id: str | None = None
    ) -> dict[_Key, int]:
        return {
            (
                str(row['project_id']),
                row['product'],
                row['resource_class'],
                row['shape'],
            ): row['unit_seconds']
            for row in usage.get(_at(start), _at(end), project_id)
        }


class TestUsage(UsageTestCase):
    def test_nothing(self) -> None:
        self.assertEqual([], usage.get(_at(0), _at(10)))

    def test_one_period(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        self.set_times(100)
        host_arqs.release(*request.key, request.attempt)
        self.set_times(160)
        key = (base.PROJECT, 'PAC', 'FPGA', '')
        for start, end, expected in (
            (0, 1000, 60),
            (100, 160, 60),
            (130, 1000, 30),
            (0, 130, 30),
            (110, 120, 10),
        ):
            self.assertEqual({key: expected}, self.seconds(start, end))
        for start, end in ((0, 100), (160, 1000)):
            self.assertEqual({}, self.seconds(start, end))
        self.assertEqual({}, self.seconds(0, 1000, _PROJECTS[1]))
        [period] = self.rows(_TABLE)
        self.assertEqual(request.instance_uuid, period['instance_uuid'])

    def test_what_goes_on_counts_until_now(self) -> None:
        host_arqs.acquire(self.request())
        self.set_times(0)
        now = schema.now()
        for end in (now, now + datetime.timedelta(days=10)):
            [row] = usage.get(_at(0), end)
            self.assertAlmostEqual(
                (now - _BASE).total_seconds(), row['unit_seconds'], delta=60
            )
            self.assertIs(int, type(row['unit_seconds']))

    def test_last_periods(self) -> None:
        request = self.request()
        [arq] = host_arqs.acquire(request)
        self.set_times(100)
        found = usage.get_last([arq['uuid'], uuidutils.generate_uuid()])
        self.assertEqual(
            {
                arq['uuid']: {
                    'arq_uuid': arq['uuid'],
                    'product': 'PAC',
                    'shape': '',
                    'began_at': _at(100),
                    'ended_at': None,
                }
            },
            found,
        )
        self.assertEqual({}, usage.get_last([]))

    def test_one_that_is_bound_again(self) -> None:
        [uuid] = self.make_arqs(1)
        for seconds in (0, 100):
            client_arqs.bind({uuid: self.place()})
            self.set_times(seconds)
            client_arqs.unbind([uuid])
            self.set_times(seconds + 7)
        self.assertEqual([14], list(self.seconds(0, 1000).values()))
        self.assertEqual(_at(100), usage.get_last([uuid])[uuid]['began_at'])

    def test_a_move_on_the_host_goes_on(self) -> None:
        request = self.request()
        [arq] = host_arqs.acquire(request)
        self.set_times(0)
        adoption.adopt(
            (*request.key[:2], 'old'), 2, [arq['uuid']], from_role='active'
        )
        host_arqs.release(*request.key[:2], 'old', 3)
        self.set_times(50)
        self.assertEqual([50], list(self.seconds(0, 1000).values()))

    def test_units_of_a_host_that_is_forgotten(self) -> None:
        host_arqs.acquire(self.request())
        self.set_times(0)
        self.backdate_report()
        host.forget(self.host.hostname, 180)
        self.set_times(30)
        self.assertEqual([30], list(self.seconds(0, 1000).values()))

    def backdate_report(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=_BASE)
            )

    def test_what_fails_leaves_nothing(self) -> None:
        host_arqs.acquire(self.request())
        [uuid] = self.make_arqs(1)
        client_arqs.bind({uuid: self.place()})
        self.assertEqual('BindFailed', client_arqs.get(uuid)['state'])
        client_arqs.delete_by_uuids([uuid], bound_allowed=True)
        self.assertEqual(1, len(self.rows(_TABLE)))

    def test_statements_do_not_depend_on_the_amount(self) -> None:
        def get() -> None:
            usage.get(_at(0), schema.now())

        self.assertEqual(1, len(self.statements(get)))
        few = self.life(1)
        self.assertEqual(len(few), len(self.life(4)))
        self.assertEqual(2, sum('held_periods' in each for each in few))
        self.assertEqual(1, len(self.statements(get)))

    def life(self, amount: int) -> list[str]:
        """The statements of a server that has so many units and is gone."""
        name = f'qat-{amount}'
        self.make_profile({'resources:CUSTOM_QAT': str(amount)}, name=name)
        request = self.request(
            self.host.allocated_functions(amount), device_profile_name=name
        )

        def call() -> None:
            host_arqs.acquire(request)
            host_arqs.release(*request.key, request.attempt)

        return self.statements(call)


class TestOldPeriods(UsageTestCase):
    def test_only_old_ones_are_forgotten(self) -> None:
        servers = [self.request() for _server in range(3)]
        for request in servers[:2]:
            host_arqs.acquire(request)
            host_arqs.release(*request.key, request.attempt)
        host_arqs.acquire(servers[2])
        oldest = self.rows(_TABLE)[0]
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(_TABLE)
                .where(_TABLE.c.id == oldest['id'])
                .values(ended_at=schema.now() - datetime.timedelta(days=40))
            )
        self.assertEqual([0, 1, 0], list(map(usage.forget_old, [50, 30, 30])))
        self.assertEqual(
            [request.instance_uuid for request in servers[1:]],
            [period['instance_uuid'] for period in self.rows(_TABLE)],
        )


class TestRandomHistory(UsageTestCase):
    """The sums are those of an independent count, at any time."""

    def setUp(self) -> None:
        super().setUp()
        self.random = random.Random('history')
        #: Each unit that was had: the key, and from when to when.
        self.had: list[tuple[_Key, int, int]] = []
        #: The keys of what a server has, since when, and how it ends.
        self.has: list[tuple[list[_Key], int, Callable[[], Any]]] = []

    def test_sums(self) -> None:
        seconds = 0
        for _step in range(45):
            seconds += self.random.randrange(100)
            if self.has and self.random.random() < 0.45:
                self.end(seconds)
            else:
                self.begin(seconds)
            self.set_times(seconds)
        self.assertGreater(len(self.had), 10)
        self.assertGreater(len(self.has), 0)
        for _window in range(20):
            start = self.random.randrange(seconds)
            end = self.random.randrange(start + 1, seconds + 2)
            expected = self.count(start, end)
            self.assertEqual(expected, self.seconds(start, end))
            project = self.random.choice(_PROJECTS)
            self.assertEqual(
                {
                    key: amount
                    for key, amount in expected.items()
                    if key[0] == project
                },
                self.seconds(start, end, project),
            )

    def count(self, start: int, end: int) -> dict[_Key, int]:
        """Second by second."""
        found: collections.Counter[_Key] = collections.Counter()
        for key, began, ended in (
            *self.had,
            *(
                (key, began, 10**6)
                for keys, began, _end in self.has
                for key in keys
            ),
        ):
            found[key] += sum(
                began <= second < ended for second in range(start, end)
            )
        return {key: amount for key, amount in found.items() if amount}

    def end(self, seconds: int) -> None:
        keys, began, end = self.has.pop(self.random.randrange(len(self.has)))
        end()
        self.had += [(key, began, seconds) for key in keys]

    def begin(self, seconds: int) -> None:
        project = self.random.choice(_PROJECTS)
        free = self.free()
        kind = self.random.choice(['qat', 'eighth', 'client'])
        if kind == 'qat' and free['CUSTOM_QAT'] >= 2:
            keys = [(project, 'C62x', 'CUSTOM_QAT', '')] * 2
            end = self.acquire(
                project, 'qat', self.host.allocated_functions(2)
            )
        elif kind == 'eighth' and free['eighth'] >= 1:
            keys = [
                (
                    project,
                    'H100',
                    naming.shape_class(reports.EIGHTH),
                    reports.EIGHTH,
                )
            ]
            end = self.acquire(
                project,
                'eighth',
                self.host.allocated_shapes(reports.EIGHTH),
            )
        elif free['FPGA']:
            keys = [(project, 'PAC', 'FPGA', '')]
            end = self.bind(project)
        else:
            return
        self.has.append((keys, seconds, end))

    def free(self) -> collections.Counter[str]:
        """How many units no one has, of one card, and of one region."""
        held = collections.Counter(
            key[2] for keys, _began, _end in self.has for key in keys
        )
        return collections.Counter(
            {
                'CUSTOM_QAT': 4 - held['CUSTOM_QAT'],
                'eighth': 7 - held[naming.shape_class(reports.EIGHTH)],
                'FPGA': 1 - held['FPGA'],
            }
        )

    def acquire(
        self,
        project: str,
        profile: str,
        allocation: provider_allocation.ProviderAllocation,
    ) -> Callable[[], Any]:
        request = self.request(
            allocation, project_id=project, device_profile_name=profile
        )
        host_arqs.acquire(request)
        # A host asks again when it has heard no answer.
        host_arqs.acquire(request)
        return lambda: host_arqs.release(*request.key, request.attempt)

    def bind(self, project: str) -> Callable[[], Any]:
        """As Nova's Cyborg client does, which names the project later."""
        [uuid] = self.make_arqs(1)
        place = self.place()
        client_arqs.bind({uuid: {**place, 'project_id': project}})
        return self.random.choice(
            [
                lambda: client_arqs.unbind([uuid]),
                lambda: client_arqs.delete_by_uuids(
                    [uuid], bound_allowed=True
                ),
                lambda: client_arqs.delete_by_instance(place['instance_uuid']),
            ]
        )
