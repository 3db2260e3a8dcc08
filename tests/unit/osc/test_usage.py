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

import sqlalchemy as sa

from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.osc import usage
from unit.osc import fleet


class TestShow(fleet.FleetTestCase):
    def test_what_goes_on(self) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HELD_PERIODS).values(
                    began_at=schema.now() - datetime.timedelta(hours=2)
                )
            )
        names, [row] = self.listed(usage.Show, '--start', '2026-01-01')
        self.assertEqual(
            {
                'Project': fleet.PROJECT,
                'Product': 'PAC',
                'Resource class': 'FPGA',
                'Shape': '',
                'Units': 1,
            },
            dict(zip(names[:-1], row[:-1], strict=True)),
        )
        self.assertEqual('Unit hours', names[-1])
        self.assertAlmostEqual(2, row[-1], delta=0.1)

    def test_nothing_was_held(self) -> None:
        for arguments, who in (
            ((), 'No one'),
            (('--project', 'gold'), 'No project with the id gold'),
        ):
            status, text = self.run_command(
                usage.Show,
                '--start',
                '2020-01-01T12:00:00+01:00',
                '--end',
                '2020-01-02',
                *arguments,
            )
            self.assertEqual(0, status)
            self.assertIn(
                f'{who} held a unit from 2020-01-01T11:00:00+00:00 to '
                '2020-01-02T00:00:00+00:00.',
                text,
            )
