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

import datetime
from typing import Any

import fixtures
import sqlalchemy as sa

from nova_accel import conf
from nova_accel.api.compute import occasion
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from unit.api import base

_HELD = {
    'project_id': base.PROJECT,
    'product': 'PAC_ARRIA10',
    'resource_class': 'FPGA',
    'shape': '',
    'units': 1,
}


class UsageTestCase(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()
        self.create_profile()

    def hold(
        self,
        number: int,
        began: str,
        ended: str | None,
        project: str = base.PROJECT,
    ) -> None:
        """A server of the project has a unit so long."""
        arq = self.create_arq(project)
        self.bind(arq, instance=base.numbered_uuid(number))
        if ended is not None:
            self.ok(
                'DELETE',
                f'/accelerator_requests?arqs={arq}',
                roles=base.SERVICE,
            )
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HELD_PERIODS)
                .where(schema.HELD_PERIODS.c.arq_uuid == arq)
                .values(
                    began_at=datetime.datetime.fromisoformat(began),
                    ended_at=ended and datetime.datetime.fromisoformat(ended),
                )
            )


class ShowUsageTest(UsageTestCase):
    def usage(self, query: str = '', **caller: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.ok(
            'GET', f'/usage{query}', version='2.5', **caller
        )['usage']
        return found

    def test_an_hour_of_each_project(self) -> None:
        self.hold(1, '2026-11-01T06:00Z', '2026-11-01T07:00Z')
        self.hold(
            2, '2026-11-01T06:30Z', '2026-11-01T07:00Z', base.OTHER_PROJECT
        )
        query = '?start=2026-11-01T00:00Z&end=2026-11-02T00:00%2B00:00'
        ours = {**_HELD, 'unit_seconds': 3600}
        theirs = {
            **_HELD,
            'project_id': base.OTHER_PROJECT,
            'unit_seconds': 1800,
        }
        both = self.usage(query)
        self.assertEqual(
            {
                'start': '2026-11-01T00:00:00+00:00',
                'end': '2026-11-02T00:00:00+00:00',
                'held': [ours, theirs],
            },
            both,
        )
        self.assertEqual(
            [theirs],
            self.usage(f'{query}&project_id={base.OTHER_PROJECT}')['held'],
        )
        self.assertEqual([ours], self.usage(query, roles=base.READER)['held'])
        self.assertEqual(
            [ours],
            self.usage(
                f'{query}&project_id={base.PROJECT}', roles=base.READER
            )['held'],
        )

    def test_of_another_project(self) -> None:
        for asked in (
            {'project': base.PROJECT, 'query': base.OTHER_PROJECT},
            {'project': '', 'query': base.PROJECT},
        ):
            self.assertIn(
                'nova_accel:usage:all_projects',
                self.refused(
                    403,
                    'GET',
                    f'/usage?project_id={asked["query"]}',
                    roles=base.READER,
                    project=asked['project'],
                    version='2.5',
                ),
            )

    def test_four_weeks_by_default(self) -> None:
        found = self.usage()
        start, end = (
            datetime.datetime.fromisoformat(found[name])
            for name in ('start', 'end')
        )
        self.assertEqual(datetime.timedelta(days=28), end - start)
        self.assertAlmostEqual(
            datetime.datetime.now(datetime.UTC).timestamp(),
            end.timestamp(),
            delta=60,
        )

    def test_times_that_are_none(self) -> None:
        for query, told in (
            ('start=now', 'start: now is not a time in ISO 8601'),
            ('end=2026-11-01', 'end: the time has no time zone'),
            (
                'start=2026-11-02T00:00Z&end=2026-11-02T00:00Z',
                'start: the time is not before end',
            ),
            ('begin=2026-11-02T00:00Z', 'Unknown argument: "begin"'),
        ):
            self.assertIn(
                told,
                self.refused(400, 'GET', f'/usage?{query}', version='2.5'),
            )

    def test_more_than_one_answer_takes(self) -> None:
        conf.CONF.set_override('max_unpaged', 1, 'nova_accel')
        self.hold(1, '2026-11-01T06:00Z', None)
        query = '/usage?start=2026-11-01T00:00Z'
        self.ok('GET', query, version='2.5')
        self.hold(2, '2026-11-01T06:00Z', None, base.OTHER_PROJECT)
        self.assertIn(
            'ask for one project',
            self.refused(400, 'GET', query, version='2.5'),
        )

    def test_older_clients_know_none(self) -> None:
        self.refused(406, 'GET', '/usage', version='2.4')


class ForgetOldTest(UsageTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.hold(1, '2020-11-01T06:00Z', '2020-11-01T07:00Z')
        # The first report may have been an occasion.
        with engine.writer() as connection:
            connection.execute(sa.delete(schema.LEASES))

    def left(self) -> int:
        """How many periods there are after the next report."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.handlers.usage._TO_FORGET',
                occasion.Occasion(),
            )
        )
        self.report_host()
        with engine.reader() as connection:
            return int(
                connection.scalar(
                    sa.select(sa.func.count()).select_from(schema.HELD_PERIODS)
                )
                or 0
            )

    def test_a_report_is_the_occasion(self) -> None:
        self.assertEqual(0, self.left())

    def test_all_are_kept(self) -> None:
        conf.CONF.set_override('usage_days', 0, 'nova_accel')
        self.assertEqual(1, self.left())

    def test_one_process_at_a_time(self) -> None:
        self.assertEqual(0, self.left())
        self.hold(2, '2020-11-01T06:00Z', '2020-11-01T07:00Z')
        self.assertEqual(1, self.left())

    def test_a_fault_fails_no_report(self) -> None:
        with fixtures.MonkeyPatch(
            'nova_accel.db.usage.forget_old', lambda _days: 1 // 0
        ):
            self.assertEqual(1, self.left())
        self.assertIn('Old periods of usage', self.log.output)
